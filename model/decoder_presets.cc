#include "model/decoder_presets.h"

#include "model/internal/presets/families.h"

namespace trainfare::model {

std::vector<Architecture> DecoderPresets() {
  std::vector<Architecture> all = internal::LlamaKinPresets();
  for (const auto& of_family : {internal::LayerNormPresets(),
                                internal::ExpertPresets(),
                                internal::StateSpacePresets(),
                                internal::DeltaRulePresets(),
                                internal::ConvolutionPresets()}) {
    all.insert(all.end(), of_family.begin(), of_family.end());
  }
  return all;
}

}  // namespace trainfare::model
