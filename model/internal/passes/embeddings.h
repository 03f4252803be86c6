#pragma once

// Tables of words, positions and types: rows gathered, and their gradients.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Those of so many tokens, which are one side's.
void EmbeddingsForward(Pass& pass, int64_t tokens);
void EmbeddingsBackward(Pass& pass, int64_t tokens);

// The gradient of a table of so many rows that so many tokens read.
void TableGradient(Pass& pass, int64_t rows, int64_t tokens, int64_t width);

// A table that the logits' product reads, too, has two gradients.
void AddTiedGradient(Pass& pass);

// Another gradient of weights meets what stands, whose numbers have so many
// bytes.
void AddWeightGradient(Pass& pass,
                       KernelName name,
                       int64_t elements,
                       int64_t sum_width);

}  // namespace trainfare::model::internal
