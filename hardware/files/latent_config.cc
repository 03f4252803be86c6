// Decoders whose keys and values come of one latent for all heads (DeepSeek-AI
// 2024, "DeepSeek-V2", section 2.1), most with experts.

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;

// Of a type's class, where its file does not say.
struct LatentUsual {
  int64_t query_rank = 1536;
  int64_t key_value_rank = 512;
  int64_t plain = 128;  // of a head, beside what carries its position
  int64_t value = 128;
  bool tied = false;
};

// Null is none; a file that does not say has the rank of its class.
Architecture ReadLatent(const ConfigJson& c, const LatentUsual& usual = {}) {
  Architecture a = ReadLlama(c, usual.tied);
  a.key_value_heads = 0;
  const int64_t plain = c.Count("qk_nope_head_dim", usual.plain);
  a.rotary_head_size = c.Count("qk_rope_head_dim", 64);
  a.head_size = plain + a.rotary_head_size;
  a.value_head_size = c.Count("v_head_dim", usual.value);
  a.latent_query =
      c.IsNull("q_lora_rank") ? 0 : c.Count("q_lora_rank", usual.query_rank);
  a.latent_key_value = c.Count("kv_lora_rank", usual.key_value_rank);
  c.Expect("qk_head_dim", a.head_size);
  // Weights come in fp8 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

// A token goes to experts of so many of so many groups.
void ReadGroups(const ConfigJson& c,
                int64_t groups,
                int64_t per_token,
                Architecture& a) {
  a.expert_groups = c.PositiveCount("n_group", groups);
  a.expert_groups_per_token = c.PositiveCount("topk_group", per_token);
}

// Its file says whether it has groups.
Architecture ReadDeepSeekV2(const ConfigJson& c) {
  Architecture a = ReadLatent(c);
  ReadExperts(c, {.count = 64, .intermediate = 1407, .shared = 2}, a);
  if (c.Text("topk_method", "greedy") != "greedy") ReadGroups(c, 1, 1, a);
  return a;
}

Architecture ReadDeepSeekV3(const ConfigJson& c) {
  Architecture a = ReadLatent(c);
  ReadExperts(c,
              {.count = 256,
               .per_token = 8,
               .intermediate = 2048,
               .shared = 1,
               .dense = 3},
              a);
  if (c.Text("topk_method", "noaux_tc") != "greedy") ReadGroups(c, 8, 4, a);
  return a;
}

// Z.ai 2026, GLM-4.7-Flash.
Architecture ReadGlm4MoeLite(const ConfigJson& c) {
  Architecture a =
      ReadLatent(c, {.query_rank = 768, .plain = 192, .value = 256});
  ReadExperts(c,
              {.count = 64,
               .per_token = 4,
               .intermediate = 1536,
               .shared = 1,
               .dense = 1},
              a);
  ReadGroups(c, 1, 1, a);
  c.Expect("partial_rotary_factor", 1.0);
  return a;
}

// Mistral AI 2026, Mistral Small 4; queries are scaled by how far in they are,
// in passes that are there anyway.
Architecture ReadMistral4(const ConfigJson& c) {
  Architecture a =
      ReadLatent(c, {.query_rank = 1024, .key_value_rank = 256, .plain = 64});
  ReadExperts(
      c, {.count = 128, .per_token = 4, .intermediate = 2048, .shared = 1}, a);
  ReadGroups(c, 1, 1, a);
  return a;
}

// Sarvam AI 2026, whose first files have names of their own.
Architecture ReadSarvamMla(const ConfigJson& c) {
  Architecture a = ReadLatent(c, {.query_rank = 0});
  ReadExperts(c,
              {.count = 128,
               .per_token = 8,
               .intermediate = 2048,
               .shared = 1,
               .dense = 1},
              a);
  ReadGroups(c, 1, 1, a);
  return a;
}

// Tencent 2026, Youtu-LLM: without experts.
Architecture ReadYoutu(const ConfigJson& c) {
  Ignore(c, {"embedding_initializer_range"});
  return ReadLatent(c, {.tied = true});
}

constexpr std::array kLatent = {
    ModelType{"deepseek_v2", &ReadDeepSeekV2},
    ModelType{"deepseek_v3", &ReadDeepSeekV3},
    ModelType{"glm4_moe_lite", &ReadGlm4MoeLite},
    ModelType{"kimi_k2", &ReadDeepSeekV3},
    ModelType{"mistral4", &ReadMistral4},
    ModelType{"sarvam_mla", &ReadSarvamMla},
    ModelType{"youtu", &ReadYoutu},
};

}  // namespace

std::span<const ModelType> LatentTypes() { return kLatent; }

}  // namespace trainfare::hardware
