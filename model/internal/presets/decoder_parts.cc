#include "model/internal/presets/decoder_parts.h"

#include <utility>

namespace trainfare::model::internal {

Architecture Llama(std::string name, const Dimensions& d) {
  Architecture a;
  a.name = std::move(name);
  a.family = Family::kDecoder;
  a.layers = d.layers;
  a.hidden = d.hidden;
  a.heads = d.heads;
  a.key_value_heads = d.key_value_heads == d.heads ? 0 : d.key_value_heads;
  a.intermediate = d.intermediate;
  a.vocabulary = d.vocabulary;
  a.positions = d.positions;
  a.embedding_layer_norm = false;
  a.pooler = false;
  a.separate_projections = true;
  a.head = Head::kCausalLanguageModel;
  a.dropout = 0.0;
  a.norm = Norm::kRms;
  a.norm_bias = false;
  a.norm_placement = NormPlacement::kBefore;
  a.position_kind = PositionKind::kRotary;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.activation = Activation::kSilu;
  a.gated = true;
  a.untied_output = true;
  return a;
}

Architecture Qwen2(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.attention_bias = true;
  return a;
}

Architecture Qwen3(std::string name, const Dimensions& d) {
  Architecture a = HeadSize(Llama(std::move(name), d), 128);
  a.query_key_norm = QueryKeyNorm::kHead;
  return a;
}

Architecture Glm(std::string name, const Dimensions& d) {
  return Rotated(HeadSize(Qwen2(std::move(name), d), 128), 64);
}

Architecture Tied(Architecture a) {
  a.untied_output = false;
  return a;
}

Architecture HeadSize(Architecture a, int64_t size) {
  a.head_size = size;
  return a;
}

Architecture Windowed(Architecture a, int64_t window, int64_t layers) {
  a.window = window;
  a.windowed_layers = layers;
  return a;
}

Architecture Unrotated(Architecture a, int64_t layers) {
  a.unrotated_layers = layers;
  return a;
}

Architecture Rotated(Architecture a, int64_t rotary_head_size) {
  a.rotary_head_size = rotary_head_size;
  return a;
}

Architecture Experts(Architecture a, const ExpertDimensions& e) {
  a.experts = e.count;
  a.experts_per_token = e.per_token;
  a.expert_intermediate = e.intermediate;
  a.shared_intermediate = e.shared;
  return a;
}

}  // namespace trainfare::model::internal
