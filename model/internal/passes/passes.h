#pragma once

// A model's forward and backward pass over a micro-batch, part by part.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Embeddings, blocks, head and loss.
void ForwardPass(Pass& pass);

// The same backward, down to the first weights that train.
void BackwardPass(Pass& pass);

}  // namespace trainfare::model::internal
