#pragma once

#include "trainer/aten.h"

namespace trainfare::trainer {

// input (.., in) times weight (out, in) transposed, plus bias (out).
//
// Single precision on a CPU goes to oneDNN instead of LibTorch's default, MKL:
// MKL keeps to 256-bit vectors on other makers' processors. Measured on a
// two-core AMD EPYC (Zen 5), 1024 x 768 x 3072: 211 and 450 GFLOP/s
// (docs/trainer.md). Same sums, rounded in another order.
at::Tensor Linear(const at::Tensor& input,
                  const at::Tensor& weight,
                  const at::Tensor& bias);

}  // namespace trainfare::trainer
