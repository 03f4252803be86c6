#pragma once

// Operators of the fused stack: each one pass forward and one backward over
// what eager layers take several for. Both directions are checked against the
// eager operators in double precision
// (tests/trainer/network/fused_layers_test.cc).

#include "trainer/kernels/fused_kernels.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// f(input + bias) of (.., columns).
at::Tensor FusedBiasActivation(const at::Tensor& input,
                               const at::Tensor& bias,
                               Activation activation);

struct SumAndNorm {
  at::Tensor sum;     // what residuals go on with
  at::Tensor normed;  // its LayerNorm
};

// sum = dropout(input + bias) + residual, and LayerNorm of it; `dropout` 0
// where not training.
SumAndNorm FusedAddNorm(const at::Tensor& input,
                        const at::Tensor& bias,
                        const at::Tensor& residual,
                        const at::Tensor& weight,
                        const at::Tensor& shift,
                        double epsilon,
                        double dropout);

// dropout(softmax(scale * scores)) of (B, heads, T, S) over S. `padding`
// (B, 1, 1, S) is added before, where it is defined; `causal`: query i sees
// the keys up to i.
at::Tensor FusedSoftmaxDropout(const at::Tensor& scores,
                               const at::Tensor& padding,
                               bool causal,
                               double scale,
                               double dropout);

}  // namespace trainfare::trainer
