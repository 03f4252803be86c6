#pragma once

// What blocks like Llama's compute between their products, an operation at a
// time as Transformers has it.

#include <cstdint>

#include "model/architecture.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// x / sqrt(mean(x^2) + e) * g over the last extent, the middle of it in fp32.
at::Tensor RmsNorm(const at::Tensor& input,
                   const at::Tensor& weight,
                   double epsilon);

// GELU's approximation by tanh as GPT-2 has it: each operation by itself.
at::Tensor GeluByOperations(const at::Tensor& input);

// The function within a feed-forward, of its gate where it has one.
at::Tensor GateOf(model::Activation activation, const at::Tensor& input);

// (B, keys, T, D) as often side by side as there are queries to a key.
at::Tensor RepeatHeads(const at::Tensor& heads, int64_t times);

}  // namespace trainfare::trainer
