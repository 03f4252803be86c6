#pragma once

// Attention's core: from queries, keys and values to their context, on chip
// (flash) or by products, softmax and copies, and back.

#include <cstdint>

#include "model/internal/passes/attention_shape.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// LibTorch's flash attention takes heads where the projections left them.
bool CopiesHeads(const Pass& pass);

// From so many elements of queries and keys, and the values, to their context;
// and back.
void AttentionCoreForward(Pass& pass,
                          const AttentionShape& shape,
                          int64_t queries,
                          int64_t keys);
void AttentionCoreBackward(Pass& pass,
                           const AttentionShape& shape,
                           int64_t queries,
                           int64_t keys);

}  // namespace trainfare::model::internal
