#include "trainer/network/make_transformer.h"

#include "model/error.h"
#include "model/fields.h"
#include "model/trainer_rules.h"
#include "trainer/network/decoder.h"
#include "trainer/network/encoder.h"
#include "trainer/network/encoder_decoder.h"
#include "trainer/network/llama_decoder.h"

namespace trainfare::trainer {

using model::Architecture;
using model::Family;

TransformerOptions DefaultOptions(const Architecture& architecture) {
  TransformerOptions options;
  options.hidden_dropout = architecture.dropout;
  options.attention_dropout = architecture.dropout;
  options.classifier_dropout = architecture.dropout;
  switch (architecture.family) {
    case Family::kEncoder:
      if (LayoutOf(architecture) == EncoderLayout::kRoberta) {
        options.layer_norm_epsilon = 1e-5;
        options.padding_id = architecture.position_offset - 1;
      }
      break;
    case Family::kDecoder:
      options.layer_norm_epsilon = 1e-5;
      options.activation = Activation::kGeluTanh;
      break;
    case Family::kEncoderDecoder:
      options.layer_norm_epsilon = 1e-5;
      options.activation = Activation::kRelu;
      break;
  }
  return options;
}

std::unique_ptr<Transformer> MakeTransformer(const Architecture& architecture,
                                             const TransformerOptions& options,
                                             at::Device device,
                                             uint64_t seed) {
  model::RequireTrainerNetwork(architecture);
  model::RequireTrainerParts(
      architecture, options.trainable, options.recompute);
  if (!model::HasPlainBlock(architecture)) {
    return std::make_unique<LlamaDecoder>(architecture, options, device, seed);
  }
  switch (architecture.family) {
    case Family::kEncoder:
      return std::make_unique<Encoder>(architecture, options, device, seed);
    case Family::kDecoder:
      return std::make_unique<Decoder>(architecture, options, device, seed);
    case Family::kEncoderDecoder:
      return std::make_unique<EncoderDecoder>(
          architecture, options, device, seed);
  }
  ENSURE(false, "unknown family");
}

}  // namespace trainfare::trainer
