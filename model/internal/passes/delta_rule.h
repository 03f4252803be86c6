#pragma once

// The gated delta rule that mixes tokens in the place of attention (Yang, Kautz
// & Hatamizadeh 2024, "Gated Delta Networks", section 3.3: chunks through the
// WY representation), with the residual and norm behind it.
// docs/models/delta_rule.md derives its counts.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Projections, convolution, rule, gated norm, output projection.
void DeltaRuleForward(Pass& pass, int64_t tokens);
// The same backward; what the rule writes to memory is made again, but for its
// result and the inverse of each chunk.
void DeltaRuleBackward(Pass& pass, int64_t tokens);

}  // namespace trainfare::model::internal
