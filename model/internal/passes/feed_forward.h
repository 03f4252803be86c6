#pragma once

// The feed-forward of a block, dense or of experts, with the residual and norm
// behind it.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// `experts`: whether the block has them.
void FeedForwardForward(Pass& pass, int64_t tokens, bool experts = false);
void FeedForwardBackward(Pass& pass, int64_t tokens, bool experts = false);

}  // namespace trainfare::model::internal
