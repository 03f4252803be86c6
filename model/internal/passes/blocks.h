#pragma once

// Whole blocks: of one stack, of the decoder behind an encoder, and those that
// predict one token further; and which of them run again in the pass backward.

#include <cstdint>
#include <vector>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Blocks that are alike: in their parts, with a window or without, with
// positions or without, with products in 16 bits where others narrow operands.
struct LayerGroup {
  int64_t count = 0;
  BlockParts parts = TransformerBlock(/*experts=*/false);
  bool windowed = false;
  bool positions = true;
  bool wide = false;
};
// Those from `first` up to `end`, as they stand in the model; where blocks with
// experts and without take turns, these first, and so of other parts.
std::vector<LayerGroup> LayerGroupsOf(const Workload& workload,
                                      int64_t first,
                                      int64_t end);

// A block of the stack, of two sides the encoder's.
void LayerForward(Pass& pass, const LayerGroup& group);

// Blocks from `first` up to `end`; `again`: after one more forward pass.
void BlocksBackward(Pass& pass, int64_t first, int64_t end, bool again);

// Bytes of the products' results that one block keeps where its operations run
// again.
int64_t KeptProductBytes(const Workload& workload, const BlockParts& parts);

// A block of the decoder of two sides.
void DecoderLayerForward(Pass& pass);
void DecoderLayerBackward(Pass& pass);

// A block that predicts one token further, with its logits and loss.
void NextTokenForward(Pass& pass);
void NextTokenBackward(Pass& pass);
// Of such blocks that share their weights one's gradients are added to those
// that another gave.
void AddNextTokenGradients(Pass& pass);

}  // namespace trainfare::model::internal
