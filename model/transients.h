#pragma once

// What passes make and drop on their way, in bytes of one rank.
// docs/models/memory.md derives them.

#include <cstdint>

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// Gradients inside the block that a backward pass is in, at their most.
int64_t BlockGradientBytes(const Workload& workload, const BlockParts& parts);
inline int64_t BlockGradientBytes(const Workload& workload, bool experts) {
  return BlockGradientBytes(workload, TransformerBlock(experts));
}

// A forward pass that keeps nothing: queries, keys, values and context.
int64_t ForwardTransients(const Workload& workload);

}  // namespace trainfare::model
