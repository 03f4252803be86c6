#pragma once

// Decoders that people train now, as rows of the description in
// model/architecture.h. Values are those of each model's config.json on Hugging
// Face, or of the code that was released with it, as the row says
// (model/internal/presets/, a file a family of blocks);
// tests/model/parameter_counts.py compares the parameters with Transformers.

#include <vector>

#include "model/architecture.h"

namespace trainfare::model {

std::vector<Architecture> DecoderPresets();

}  // namespace trainfare::model
