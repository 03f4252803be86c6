#pragma once

// What stands above the blocks: the last norm, the pooler, the task's head.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// All of it, and the loss.
void HeadForward(Pass& pass);
void HeadBackward(Pass& pass);

}  // namespace trainfare::model::internal
