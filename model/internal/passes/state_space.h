#pragma once

// A state space that mixes tokens in the place of attention (Dao & Gu 2024,
// "Transformers are SSMs", section 6: state space duality), with the residual
// and norm behind it. docs/models/state_spaces.md derives its counts.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Projection, convolution, scan, gated norm, output projection.
void StateSpaceForward(Pass& pass, int64_t tokens);
// The same backward; convolution and scan run again but for the scan's result.
void StateSpaceBackward(Pass& pass, int64_t tokens);

}  // namespace trainfare::model::internal
