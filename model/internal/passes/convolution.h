#pragma once

// The short convolution between two gates that mixes tokens in the place of
// attention (Amini et al. 2025, "LFM2 Technical Report", arXiv:2511.23404),
// with the residual and norm behind it. docs/models/convolutions.md derives its
// counts.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Projection, gate, convolution, gate, output projection.
void ConvolutionForward(Pass& pass, int64_t tokens);
void ConvolutionBackward(Pass& pass, int64_t tokens);

}  // namespace trainfare::model::internal
