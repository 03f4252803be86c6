#pragma once

// One attention block with the residual and norm behind it.

#include <cstdint>

#include "model/internal/passes/attention_shape.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Which side attention takes its keys and values from: the queries' own, or
// the encoder's.
enum class Attends { kSelf, kCross };

// Projections, scores, softmax, context, output projection, residual, norm.
void AttentionForward(Pass& pass,
                      Attends attends,
                      const AttentionShape& shape,
                      int64_t query_tokens,
                      int64_t key_tokens);
void AttentionBackward(Pass& pass,
                       Attends attends,
                       const AttentionShape& shape,
                       int64_t query_tokens,
                       int64_t key_tokens);

}  // namespace trainfare::model::internal
