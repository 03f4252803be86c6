#pragma once

// Embeddings that every block has of each token (Gemma 3n's per-layer
// embeddings): those of all blocks before the lowest, and what each block does
// with its own.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Rows of the table, and beside them what a product makes of what the lowest
// block is given; nothing in a model without them.
void LayerEmbeddingsForward(Pass& pass, int64_t tokens);
void LayerEmbeddingsBackward(Pass& pass, int64_t tokens);

// Behind a block's feed-forward, within it.
void LayerInputForward(Pass& pass, int64_t tokens);
void LayerInputBackward(Pass& pass, int64_t tokens);

}  // namespace trainfare::model::internal
