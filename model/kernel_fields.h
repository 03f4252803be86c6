#pragma once

// The counts of a kernel by their names in records, which the trainer writes
// and the calibration reads.

#include "model/fields.h"
#include "model/kernels.h"

namespace trainfare::model {

// A field has its name here, and its least; a count may be large.
template <class Archive, Of<Kernel> K>
void VisitCounts(Archive& archive, K& kernel) {
  archive(Field{.name = "matrix_flops"}, kernel.matrix_flops);
  archive(Field{.name = "vector_flops"}, kernel.vector_flops);
  archive(Field{.name = "special_ops"}, kernel.special_ops);
  archive(Field{.name = "random_draws"}, kernel.random_draws);
  archive(Field{.name = "bytes_read"}, kernel.bytes_read);
  archive(Field{.name = "bytes_written"}, kernel.bytes_written);
  archive(Field{.name = "parameter_bytes"}, kernel.parameter_bytes);
  archive(Field{.name = "parameter_bytes_written"},
          kernel.parameter_bytes_written);
  archive(Field{.name = "work_items"}, kernel.work_items);
}

template <class Archive, Of<GemmExtents> G>
void VisitFields(Archive& archive, G& gemm) {
  archive(Field{.name = "batch", .least = 1}, gemm.batch);
  archive(Field{.name = "m", .least = 1}, gemm.m);
  archive(Field{.name = "n", .least = 1}, gemm.n);
  archive(Field{.name = "k", .least = 1}, gemm.k);
}

}  // namespace trainfare::model
