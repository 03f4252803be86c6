#pragma once

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// input (.., in) times weight (out, in) transposed, plus bias (out) where it is
// defined.
//
// Single precision on a CPU goes to oneDNN instead of LibTorch's default, MKL,
// whose kernel for AMD processors reaches half the rate (256 x 768 x 768: 150
// and 415 GFLOP/s); on Intel's the backward pass stays with MKL. Same sums,
// rounded in another order.
at::Tensor Linear(const at::Tensor& input,
                  const at::Tensor& weight,
                  const at::Tensor& bias);

// The two products of its backward pass, as Linear() itself takes them:
// gradient (n, out) with weight (out, in), and with input (n, in).
at::Tensor LinearInputGradient(const at::Tensor& gradient,
                               const at::Tensor& weight);
at::Tensor LinearWeightGradient(const at::Tensor& gradient,
                                const at::Tensor& input);

// The same with the weight as GPT-2 keeps it, (in, out).
at::Tensor Affine(const at::Tensor& input,
                  const at::Tensor& weight,
                  const at::Tensor& bias);

}  // namespace trainfare::trainer
