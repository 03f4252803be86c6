#pragma once

// The decoders that ship, a file a family of blocks; model/decoder_presets.h
// joins them.

#include <vector>

#include "model/architecture.h"

namespace trainfare::model::internal {

std::vector<Architecture> LlamaKinPresets();
std::vector<Architecture> LayerNormPresets();
std::vector<Architecture> ExpertPresets();
std::vector<Architecture> StateSpacePresets();
std::vector<Architecture> DeltaRulePresets();
std::vector<Architecture> ConvolutionPresets();

}  // namespace trainfare::model::internal
