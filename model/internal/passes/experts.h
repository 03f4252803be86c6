#pragma once

// A feed-forward of experts: routing, their products, and those that all tokens
// share.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Shazeer et al. 2017, Fedus et al. 2022: scores of all experts, the best k,
// rows of one expert side by side, its feed-forward, and back, weighted.
void ExpertsForward(Pass& pass, int64_t tokens);

// The backward pass of ExpertsForward(): frozen experts have no weight
// gradient.
void ExpertsBackward(Pass& pass, int64_t tokens);

}  // namespace trainfare::model::internal
