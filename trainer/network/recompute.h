#pragma once

#include <functional>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// A part of a model as a function of its input; its parameters are leaves that
// it holds.
using ModelPart = std::function<at::Tensor(const at::Tensor& input)>;

// part(input), of which only the input is kept for the backward pass, which
// computes the part again (Chen et al. 2016), with the same masks of dropout
// and in the same precision. Gradients of the part's parameters are added to
// them while it does. `input` requires a gradient: without one there is no
// backward pass to compute anything again.
at::Tensor Recomputed(const ModelPart& part, const at::Tensor& input);

}  // namespace trainfare::trainer
