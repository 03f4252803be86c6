// Decoders whose tokens go to some of many experts.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

Architecture ReadMixtral(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  ReadWindow(c, a.layers, a);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  return a;
}

// Blocks without experts by their numbers, in any order, which have to be the
// first ones.
int64_t FirstBlocks(const ConfigJson& c, const char* key) {
  if (!c.Has(key)) return 0;
  const json& list = c.At(key);
  std::set<int64_t> blocks;
  if (!list.is_array()) c.Expected(key, "a list of blocks", list);
  for (const json& block : list) {
    if (!block.is_number_integer()) {
      c.Expected(fmt::format("{}[{}]", key, blocks.size()), "a block", block);
    }
    blocks.insert(block.get<int64_t>());
  }
  const int64_t count = std::ssize(blocks);
  if (count > 0 && (*blocks.begin() != 0 || *blocks.rbegin() != count - 1)) {
    c.Expected(key, "the first blocks: 0, 1 and so on", list);
  }
  return count;
}

Architecture ReadQwenMoe(const ConfigJson& c, bool version_3) {
  Architecture a = ReadQwen(c, version_3, version_3 ? 4 : 16);
  // The third's class has windows in every block, or in none.
  if (version_3 && c.Flag("use_sliding_window", false)) {
    ReadWindow(c, a.layers, a, 4096);
  }
  a.head_size = c.PositiveCount("head_dim", 0);  // without the other's default
  a.experts = c.Count("num_experts", version_3 ? 128 : 60);
  a.experts_per_token = c.Count("num_experts_per_tok", version_3 ? 8 : 4);
  a.expert_intermediate =
      c.Count("moe_intermediate_size", version_3 ? 768 : 1408);
  c.Expect("decoder_sparse_step", 1);
  a.dense_layers = FirstBlocks(c, "mlp_only_layers");
  if (!version_3) {
    a.attention_bias = c.Flag("qkv_bias", true);
    a.shared_intermediate = c.Count("shared_expert_intermediate_size", 5632);
    a.shared_expert_gate = true;
  }
  return a;
}

Architecture ReadOlmoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  a.experts = c.Count("num_experts", 64);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = a.intermediate;
  c.Expect("clip_qkv", nullptr);
  return a;
}

Architecture ReadDeepSeek(const ConfigJson& c, bool version_3) {
  Architecture a = ReadLlama(c);
  a.output_bias = a.attention_bias;
  a.key_value_heads = 0;
  const int64_t plain = c.Count("qk_nope_head_dim", 128);
  a.rotary_head_size = c.Count("qk_rope_head_dim", 64);
  a.head_size = plain + a.rotary_head_size;
  a.value_head_size = c.Count("v_head_dim", 128);
  // Null is none; a file that does not say has the rank of its class.
  a.latent_query = c.IsNull("q_lora_rank") ? 0 : c.Count("q_lora_rank", 1536);
  a.latent_key_value = c.Count("kv_lora_rank", 512);
  a.experts = c.Count("n_routed_experts", version_3 ? 256 : 64);
  // The second's class does not say either.
  a.experts_per_token = version_3 ? c.Count("num_experts_per_tok", 8)
                                  : c.Count("num_experts_per_tok");
  a.expert_intermediate =
      c.Count("moe_intermediate_size", version_3 ? 2048 : 1407);
  const int64_t shared = c.IsNull("n_shared_experts")
                             ? 0
                             : c.Count("n_shared_experts", version_3 ? 1 : 2);
  a.shared_intermediate = shared * a.expert_intermediate;
  a.dense_layers = c.Count("first_k_dense_replace", version_3 ? 3 : 0);
  c.Expect("moe_layer_freq", 1);
  c.Expect("qk_head_dim", a.head_size);
  // Weights come in fp8 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

Architecture ReadGraniteMoe(const ConfigJson& c) {
  Architecture a = ReadGranites(c);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  c.Expect("position_embedding_type", "rope");
  return a;
}

Architecture ReadGptOss(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  if (a.head_size == 0) a.head_size = 64;
  a.attention_bias = a.output_bias = c.Flag("attention_bias", true);
  ReadWindow(c, (a.layers + 1) / 2, a, 128);
  a.attention_sinks = true;
  a.experts = c.Count("num_local_experts", 128);
  a.experts_per_token =
      c.Count(c.Has("num_experts_per_tok") ? "num_experts_per_tok"
                                           : "experts_per_token",
              4);
  c.Has("experts_per_token");
  a.expert_intermediate = a.intermediate;
  a.router_bias = a.expert_bias = true;
  c.Has("initial_context_length");
  c.Has("swiglu_limit");
  // Weights come in MXFP4 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

// GLM-4.5.
Architecture ReadGlm4Moe(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  // Where heads do not divide the width its class drops the rest.
  if (a.hidden % a.heads != 0 && a.head_size == 0) {
    a.head_size = a.hidden / a.heads;
  }
  a.output_bias = false;
  if (c.Flag("use_qk_norm", false)) {
    a.query_key_norm = model::QueryKeyNorm::kHead;
  }
  a.rotary_head_size = RotarySize(a, c.Part("partial_rotary_factor", 0.5));
  a.experts = c.Count("n_routed_experts", 128);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = c.Count("moe_intermediate_size", 1408);
  a.shared_intermediate =
      c.Count("n_shared_experts", 1) * a.expert_intermediate;
  a.dense_layers = c.Count("first_k_dense_replace", 1);
  return a;
}

constexpr std::array kExpertDecoders = {
    ModelType{"deepseek_v2",
              [](const ConfigJson& c) { return ReadDeepSeek(c, false); }},
    ModelType{"deepseek_v3",
              [](const ConfigJson& c) { return ReadDeepSeek(c, true); }},
    ModelType{"glm4_moe", &ReadGlm4Moe},
    ModelType{"gpt_oss", &ReadGptOss},
    ModelType{"granitemoe", &ReadGraniteMoe},
    ModelType{"mixtral", &ReadMixtral},
    ModelType{"olmoe", &ReadOlmoe},
    ModelType{"qwen2_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, false); }},
    ModelType{"qwen3_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, true); }},
};

}  // namespace

std::span<const ModelType> ExpertDecoderTypes() { return kExpertDecoders; }

}  // namespace trainfare::hardware
