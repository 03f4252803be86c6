#pragma once

// Decoders that people train now, as rows of the description in
// model/architecture.h. Values are those of each model's config.json on Hugging
// Face, as `source` of the row says; tests/model/parameter_counts.py compares
// the parameters with Transformers.

#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.h"

namespace trainfare::model {

std::vector<Architecture> DecoderPresets();

// Radford et al. 2019.
Architecture Gpt2(std::string name,
                  int64_t layers,
                  int64_t hidden,
                  int64_t heads);

}  // namespace trainfare::model
