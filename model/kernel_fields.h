#pragma once

// A kernel in a record (model/record_fields.h).

#include <optional>
#include <string>
#include <string_view>

#include "model/fields.h"
#include "model/kernels.h"
#include "model/limits.h"

namespace trainfare::model {

template <class Archive, Of<GemmExtents> G>
void VisitFields(Archive& archive, G& gemm) {
  const auto extent = [&](std::string_view name, auto& value) {
    archive(
        Field{
            .name = name, .required = true, .least = 1, .most = kLargestCount},
        value);
  };
  extent("batch", gemm.batch);
  extent("m", gemm.m);
  extent("n", gemm.n);
  extent("k", gemm.k);
}

// Names are of the program that wrote them, and are not read.
template <class Archive, Of<Kernel> K>
void VisitFields(Archive& archive, K& kernel) {
  constexpr int64_t kMostWork = 1'000'000'000'000'000'000;
  if constexpr (!ReadingArchive<Archive>) {
    const std::string name(kernel.name.text());
    archive(Field{.name = "name"}, name);
  }
  archive(Field{.name = "kind", .required = true}, kernel.kind);
  const auto work = [&](std::string_view name, auto& value) {
    archive(Field{.name = name, .required = true, .most = kMostWork}, value);
  };
  work("matrix_flops", kernel.matrix_flops);
  work("vector_flops", kernel.vector_flops);
  work("special_ops", kernel.special_ops);
  work("random_draws", kernel.random_draws);
  work("bytes_read", kernel.bytes_read);
  work("bytes_written", kernel.bytes_written);
  work("parameter_bytes", kernel.parameter_bytes);
  work("parameter_bytes_written", kernel.parameter_bytes_written);
  work("work_items", kernel.work_items);
  archive(Field{.name = "row_reads"}, kernel.row_reads);
  archive(Field{.name = "launches",
                .required = true,
                .least = 1,
                .most = kLargestCount},
          kernel.launches);
  // Of a product alone.
  std::optional<GemmExtents> gemm;
  if (kernel.gemm.batch > 0) gemm = kernel.gemm;
  archive(Field{.name = "gemm"}, gemm);
  if constexpr (ReadingArchive<Archive>) {
    kernel.gemm = gemm.value_or(GemmExtents());
  }
}

}  // namespace trainfare::model
