#pragma once

// Gradients of micro-batches, added up.

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Adds a micro-batch's gradients to those that stand, a tensor at a time, as
// autograd's AccumulateGrad does, or in the products that make them, where XLA
// compiles the whole step; the first micro-batch leaves its own. Ranks
// that divide gradients add to their share. Sums in fp32 of narrow gradients
// (Optimizer::wide_gradients) are added to by every micro-batch. Listed once;
// PassesInStep() says how often it runs.
void AccumulateGradients(Pass& pass);

}  // namespace trainfare::model::internal
