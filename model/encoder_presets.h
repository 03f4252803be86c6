#pragma once

// Encoders, and models of two sides, as rows of the description in
// model/architecture.h. Values are those of each model's config.json on Hugging
// Face; tests/model/parameter_counts.py compares the parameters with
// Transformers.

#include <vector>

#include "model/architecture.h"

namespace trainfare::model {

std::vector<Architecture> EncoderPresets();

}  // namespace trainfare::model
