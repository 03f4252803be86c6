#pragma once

// A product on the matrix engine that is no layer's: of compressed gradients, of
// an update; and what the operands of a product are in.

#include <cstdint>

#include "model/kernel_list.h"
#include "model/workload.h"

namespace trainfare::model {

// (m, k) by (k, n), operands read and the result written once, `element` bytes
// each.
inline Kernel ProductKernel(KernelName name,
                            int64_t m,
                            int64_t n,
                            int64_t k,
                            int64_t launches,
                            int64_t element) {
  Kernel kernel;
  kernel.name = name;
  kernel.kind = KernelKind::kGemm;
  kernel.gemm = {1, m, n, k};
  kernel.launches = launches;
  kernel.work_items = m * n;
  kernel.matrix_flops = 2 * m * n * k;
  kernel.bytes_read = element * (m * k + k * n);
  kernel.bytes_written = element * m * n;
  return kernel;
}

// Of a step in `precision`: products of cast operands are no more than a part of
// one in fp8 or fp4, those of an update (Muon) may be narrower than all else.
inline Precision OperandsOf(const Kernel& kernel, Precision precision) {
  if (kernel.narrow_operands) return precision;
  return kernel.in_bf16 ? Precision::kBf16 : OutsideBlockProducts(precision);
}

// A sum of gradients as the product writes it that makes them, where one compiler
// has both: what stands is read, and the sum is written in place of what it
// would have written (C = A B + C).
inline Kernel AddedByProduct(Kernel add) {
  add.bytes_written = 2 * add.bytes_written - add.bytes_read;
  add.bytes_read = add.parameter_bytes_written;
  add.parameter_bytes = add.bytes();
  add.parameter_bytes_written = add.bytes_written;
  return add;
}

}  // namespace trainfare::model
