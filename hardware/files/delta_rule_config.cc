// Decoders that mix tokens by the gated delta rule in most of their blocks.

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// Blocks by their list, or of so many the last attends.
int64_t DeltaRuleLayers(const ConfigJson& c, int64_t layers) {
  const int64_t period = c.PositiveCount("full_attention_interval", 4);
  return CountWords(c, "layer_types", "linear_attention", layers)
      .value_or(layers - layers / period);
}

void ReadDeltaRule(const ConfigJson& c, Architecture& a) {
  constexpr const char* kKeyHeads = "linear_num_key_heads";
  constexpr const char* kValueHeads = "linear_num_value_heads";
  constexpr const char* kKeySize = "linear_key_head_dim";
  constexpr const char* kValueSize = "linear_value_head_dim";
  constexpr const char* kReach = "linear_conv_kernel_dim";
  a.delta_rule_layers = DeltaRuleLayers(c, a.layers);
  if (a.delta_rule_layers == 0) {
    Ignore(c, {kKeyHeads, kValueHeads, kKeySize, kValueSize, kReach});
    return;
  }
  a.delta_key_heads = c.PositiveCount(kKeyHeads, 16);
  a.delta_value_heads = c.PositiveCount(kValueHeads, 32);
  a.delta_key_size = c.PositiveCount(kKeySize, 128);
  a.delta_value_size = c.PositiveCount(kValueSize, 128);
  a.delta_convolution = c.PositiveCount(kReach, 4);
  // Of the convolution, too.
  c.Expect("hidden_act", "silu");
}

// Qwen Team 2025, Qwen3-Next, and Qwen3.5 after it. What predicts a token
// further Transformers does not build.
Architecture ReadDeltaQwen(const ConfigJson& c, const Architecture& usual) {
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  a.query_key_norm = model::QueryKeyNorm::kHead;
  a.gated_attention = true;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.25);
  ReadDeltaRule(c, a);
  c.Expect("attn_output_gate", true);
  c.Expect("mlp_only_layers", json::array());
  c.Expect("use_sliding_window", false);
  Ignore(c,
         {"mamba_ssm_dtype",
          "mtp_num_hidden_layers",
          "mtp_use_dedicated_embeddings"});
  return a;
}

Architecture ReadQwen35(const ConfigJson& c) {
  return ReadDeltaQwen(c, UsualHeads(4, 256));
}

// Experts of every block beside one that a gate weighs; no block is as wide as
// `intermediate_size`, which not every file has.
Architecture ReadDeltaQwenMoe(const ConfigJson& c,
                              int64_t experts,
                              int64_t per_token) {
  Architecture usual = UsualHeads(2, 256);
  usual.intermediate = c.PositiveCount("moe_intermediate_size", 512);
  Architecture a = ReadDeltaQwen(c, usual);
  a.intermediate = usual.intermediate;
  a.experts = c.PositiveCount("num_experts", experts);
  a.experts_per_token = c.Count("num_experts_per_tok", per_token);
  a.expert_intermediate = usual.intermediate;
  a.shared_intermediate =
      c.PositiveCount("shared_expert_intermediate_size", 512);
  a.shared_expert_gate = true;
  c.Expect("decoder_sparse_step", 1);
  return a;
}

Architecture ReadQwen35Moe(const ConfigJson& c) {
  return ReadDeltaQwenMoe(c, 256, 8);
}

Architecture ReadQwen3Next(const ConfigJson& c) {
  Architecture a = ReadDeltaQwenMoe(c, 512, 10);
  a.delta_joint_projections = a.delta_rule_layers > 0;
  return a;
}

constexpr std::array kDeltaRuleTypes = {
    ModelType{"qwen3_5_moe_text", &ReadQwen35Moe},
    ModelType{"qwen3_5_text", &ReadQwen35},
    ModelType{"qwen3_next", &ReadQwen3Next},
};

}  // namespace

std::span<const ModelType> DeltaRuleTypes() { return kDeltaRuleTypes; }

}  // namespace trainfare::hardware
