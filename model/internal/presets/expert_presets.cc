// Decoders whose tokens go to some of many experts.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

Architecture QwenMoe() {
  Architecture a = Experts(
      Qwen2("qwen1.5-moe-a2.7b", {24, 2048, 16, 16, 5632, 151936, 8192}),
      {60, 4, 1408, 5632});
  a.shared_expert_gate = true;
  return a;
}

// Muennighoff et al. 2024: 64 experts in place of each feed-forward.
Architecture Olmoe() {
  Architecture a =
      Experts(Llama("olmoe-1b-7b", {16, 2048, 16, 16, 1024, 50304, 4096}),
              {64, 8, 1024});
  a.query_key_norm = QueryKeyNorm::kWhole;
  return a;
}

// Meta 2025: one expert a token beside a shared one, as wide; of four blocks three
// see their chunk of 8192 tokens alone, and the fourth has no positions.
Architecture Llama4(std::string name,
                    const Dimensions& d,
                    int64_t experts,
                    int64_t expert_period) {
  Architecture a = Experts(HeadSize(Llama(std::move(name), d), 128),
                           {experts, 1, 8192, 8192});
  a = Unrotated(Windowed(a, 8192, d.layers - d.layers / 4), d.layers / 4);
  a.chunked_window = true;
  a.expert_period = expert_period;
  return a;
}

// The smaller one has norms of queries and keys where they rotate.
Architecture Llama4Scout() {
  Architecture a = Llama4("llama-4-scout-17b-16e",
                          {48, 5120, 40, 8, 16384, 202048, 10'485'760},
                          16,
                          1);
  a.query_key_norm = QueryKeyNorm::kRotated;
  return a;
}

// Databricks 2024: LayerNorm without biases, one matrix for query, key and value,
// which are clipped.
Architecture Dbrx() {
  Architecture a = Experts(
      Llama("dbrx", {40, 6144, 48, 8, 10752, 100352, 32768}), {16, 4, 10752});
  a.norm = Norm::kLayer;
  a.separate_projections = false;
  a.clipped_projections = true;
  return a;
}

// Abdin et al. 2024: LayerNorm, and biases of attention and logits.
Architecture PhiMoe() {
  Architecture a =
      Experts(Llama("phi-3.5-moe", {32, 4096, 32, 8, 6400, 32064, 131072}),
              {16, 2, 6400});
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  a.attention_bias = a.output_bias = a.logits_bias = true;
  return a;
}

// GLM-4.5 team 2025: a shared expert beside the routed ones.
Architecture GlmMoe(std::string name,
                    const Dimensions& d,
                    const ExpertDimensions& experts,
                    int64_t dense_layers) {
  Architecture a = Experts(Glm(std::move(name), d), experts);
  a.dense_layers = dense_layers;
  return a;
}

Architecture Glm45() {
  Architecture a = GlmMoe("glm-4.5",
                          {92, 5120, 96, 8, 12288, 151552, 131072},
                          {160, 8, 1536, 1536},
                          3);
  a.query_key_norm = QueryKeyNorm::kHead;
  return a;
}

struct ExpertGroups {
  int64_t all = 1;
  int64_t per_token = 1;
};

// DeepSeek-AI 2024: latent attention with heads of 128 + 64 and values of 128;
// of so many groups of experts (n_group, topk_group of its config.json).
Architecture DeepSeek(std::string name,
                      const Dimensions& d,
                      int64_t latent_query,
                      const ExpertDimensions& experts,
                      int64_t dense_layers,
                      const ExpertGroups& groups = {}) {
  Architecture a = Experts(Llama(std::move(name), d), experts);
  a.head_size = 192;
  a.value_head_size = 128;
  a.rotary_head_size = 64;
  a.expert_groups = groups.all;
  a.expert_groups_per_token = groups.per_token;
  a.latent_query = latent_query;
  a.latent_key_value = 512;
  a.dense_layers = dense_layers;
  return a;
}

// Singh et al. 2026, "Arcee Trinity": gates of attention by a product of their
// own, norms before and behind, a shared expert as wide as a routed one; of four
// blocks three have windows, and the fourth no positions.
Architecture Trinity(std::string name,
                     const Dimensions& d,
                     int64_t window,
                     const ExpertDimensions& experts,
                     int64_t dense_layers) {
  Architecture a = Experts(Qwen3(std::move(name), d), experts);
  a = Unrotated(Windowed(a, window, d.layers - d.layers / 4), d.layers / 4);
  a.norm_placement = NormPlacement::kBoth;
  a.gated_attention = a.separate_attention_gate = true;
  a.dense_layers = dense_layers;
  return a;
}

// OpenAI 2025: biases, sinks, every other block a window of 128.
Architecture GptOss(std::string name, int64_t layers, int64_t experts) {
  Architecture a = Windowed(
      Experts(HeadSize(Llama(std::move(name),
                             {layers, 2880, 64, 8, 2880, 201088, 131072}),
                       64),
              {experts, 4, 2880}),
      128,
      layers / 2);
  a.attention_bias = a.output_bias = a.attention_sinks = true;
  a.router_bias = a.expert_bias = true;
  return a;
}

// xAI 2024, "Grok-1", model.py and run.py as released: norms before and behind,
// gated GELU (by tanh, JAX's), scores within a cap.
Architecture Grok1() {
  Architecture a = Tied(Experts(
      Llama("grok-1", {64, 6144, 48, 8, 32768, 131072, 8192}), {8, 2, 32768}));
  a.norm_placement = NormPlacement::kBoth;
  a.activation = Activation::kGeluTanh;
  a.attention_soft_cap = true;
  return a;
}

// Baidu ERNIE Team 2025: shared experts, and a first block without experts.
Architecture ErnieMoe() {
  Architecture a = Experts(
      Tied(HeadSize(
          Llama("ernie-4.5-21b-a3b", {28, 2560, 20, 4, 12288, 103424, 131072}),
          128)),
      {64, 6, 1536, int64_t{2} * 1536});
  a.dense_layers = 1;
  return a;
}

// The largest one has no shared experts, and logits of their own.
Architecture ErnieMoeOf300b() {
  Architecture a = Experts(
      Llama("ernie-4.5-300b-a47b", {54, 8192, 64, 8, 28672, 103424, 131072}),
      {64, 8, 3584});
  a.dense_layers = 3;
  return a;
}

// Xiaomi 2026, "MiMo-V2-Flash": of 48 blocks 9 see all, with half as many heads
// of keys, and no sinks; a third of each head of queries and keys rotates.
Architecture MiMoV2Flash() {
  Architecture a = Experts(
      Windowed(HeadSize(Llama("mimo-v2-flash",
                              {48, 4096, 64, 8, 16384, 152576, 262'144}),
                        192),
               129,
               39),
      {256, 8, 2048});
  a.value_head_size = 128;
  a.rotary_head_size = 64;
  a.full_key_value_heads = 4;
  a.attention_sinks = a.windowed_sinks = true;
  a.dense_layers = 1;
  return a;
}

// MiniMax 2025: norms over all queries and keys, half of each head rotated.
Architecture MiniMaxM2() {
  Architecture a = Rotated(
      HeadSize(
          Experts(Llama("minimax-m2", {62, 3072, 48, 8, 1536, 200064, 196'608}),
                  {256, 8, 1536}),
          128),
      64);
  a.query_key_norm = QueryKeyNorm::kWhole;
  return a;
}

// Z.ai 2026, GLM-4.7-Flash: latent attention with heads of 192 + 64 and values
// of 256.
Architecture Glm47Flash() {
  Architecture a = DeepSeek("glm-4.7-flash",
                            {47, 2048, 20, 20, 10240, 154880, 202'752},
                            768,
                            {64, 4, 1536, 1536},
                            1);
  a.head_size = a.value_head_size = 256;
  return a;
}

// Tencent 2026: latent attention without experts.
Architecture YoutuLlm() {
  return Tied(DeepSeek(
      "youtu-llm-2b", {32, 2048, 16, 16, 6144, 128256, 131072}, 1536, {}, 0));
}

// Mistral AI 2026, Mistral Small 4: smaller heads and ranks, experts in every
// block.
Architecture MistralSmall4() {
  Architecture a = DeepSeek("mistral-small-4-119b",
                            {36, 4096, 32, 32, 12288, 131072, 1'048'576},
                            1024,
                            {128, 4, 2048, 2048},
                            0);
  a.head_size = 128;
  a.latent_key_value = 256;
  return a;
}

// Upstage 2026: experts in every block.
Architecture SolarOpen() {
  return Experts(HeadSize(Llama("solar-open-100b",
                                {48, 4096, 64, 8, 10240, 196608, 131072}),
                          128),
                 {128, 8, 1280, 1280});
}

// LG AI Research 2025: three blocks of four have windows, and the fourth no
// positions.
Architecture KExaone() {
  Architecture a = Experts(
      Qwen3("k-exaone-236b-a23b", {48, 6144, 64, 8, 18432, 153600, 262'144}),
      {128, 8, 2048, 2048});
  a.dense_layers = 1;
  return Unrotated(Windowed(std::move(a), 128, 36), 12);
}

// Huo et al. 2025, "dots.llm1"; Tencent 2025 and 2026; Qwen3's attention.
Architecture QwenOfShared(std::string name,
                          const Dimensions& d,
                          const ExpertDimensions& experts,
                          int64_t dense_layers) {
  Architecture a = Experts(Qwen3(std::move(name), d), experts);
  a.dense_layers = dense_layers;
  return a;
}

// Ling Team 2025: one matrix for queries, keys and values.
Architecture LingLite() {
  Architecture a =
      Experts(Llama("ling-lite-1.5", {28, 2048, 16, 4, 1408, 126464, 32768}),
              {64, 6, 1408, int64_t{2} * 1408});
  a.separate_projections = false;
  return a;
}

// Its second version: norms of queries and keys, half of each head rotated, and
// groups of experts.
Architecture LingMini() {
  Architecture a = Rotated(QwenOfShared("ling-mini-2.0",
                                        {20, 2048, 16, 4, 5120, 157184, 32768},
                                        {256, 8, 512, 512},
                                        1),
                           64);
  a.separate_projections = false;
  a.expert_groups = 8;
  a.expert_groups_per_token = 4;
  return a;
}

}  // namespace

// Long because it is a table: a row a model.
std::vector<Architecture> ExpertPresets() {
  return {
      // meta-llama/Llama-4-*-Instruct, of which the text model
      Llama4Scout(),
      Llama4("llama-4-maverick-17b-128e",
             {48, 5120, 40, 8, 16384, 202048, 1'048'576},
             128,
             2),
      // mistralai/Mixtral-8x7B-v0.1, 8x22B-v0.1
      Experts(Llama("mixtral-8x7b", {32, 4096, 32, 8, 14336, 32000, 32768}),
              {8, 2, 14336}),
      Experts(Llama("mixtral-8x22b", {56, 6144, 48, 8, 16384, 32000, 65536}),
              {8, 2, 16384}),
      // Its instructed checkpoints and v0.3
      Experts(
          Llama("mixtral-8x22b-v0.3", {56, 6144, 48, 8, 16384, 32768, 65536}),
          {8, 2, 16384}),
      // Qwen/Qwen3-*-A*, Qwen1.5-MoE-A2.7B
      Experts(Qwen3("qwen3-30b-a3b", {48, 2048, 32, 4, 6144, 151936, 40960}),
              {128, 8, 768}),
      Experts(Qwen3("qwen3-235b-a22b", {94, 4096, 64, 4, 12288, 151936, 40960}),
              {128, 8, 1536}),
      Experts(Qwen3("qwen3-coder-480b-a35b",
                    {62, 6144, 96, 8, 8192, 151936, 262144}),
              {160, 8, 2560}),
      QwenMoe(),
      // microsoft/Phi-3.5-MoE-instruct, databricks/dbrx-base
      PhiMoe(),
      Dbrx(),
      // allenai/OLMoE-1B-7B-0924
      Olmoe(),
      // zai-org/GLM-4.5-Air, GLM-4.5
      GlmMoe("glm-4.5-air",
             {46, 4096, 96, 8, 10944, 151552, 131072},
             {128, 8, 1408, 1408},
             1),
      Glm45(),
      // deepseek-ai/DeepSeek-V2-Lite, V2, V3
      DeepSeek("deepseek-v2-lite",
               {27, 2048, 16, 16, 10944, 102400, 163840},
               0,
               {64, 6, 1408, int64_t{2} * 1408},
               1),
      DeepSeek("deepseek-v2",
               {60, 5120, 128, 128, 12288, 102400, 163840},
               1536,
               {160, 6, 1536, int64_t{2} * 1536},
               1,
               {8, 3}),
      DeepSeek("deepseek-v3",
               {61, 7168, 128, 128, 18432, 129280, 163840},
               1536,
               {256, 8, 2048, 2048},
               3,
               {8, 4}),
      // moonshotai/Kimi-K2-Instruct: DeepSeek-V3 of more experts, fewer heads
      DeepSeek("kimi-k2",
               {61, 7168, 64, 64, 18432, 163840, 131072},
               1536,
               {384, 8, 2048, 2048},
               1),
      // openai/gpt-oss-20b, gpt-oss-120b
      GptOss("gpt-oss-20b", 24, 32),
      GptOss("gpt-oss-120b", 36, 128),
      // xai-org/grok-1
      Grok1(),
      // baidu/ERNIE-4.5-21B-A3B-PT, 300B-A47B-PT
      ErnieMoe(),
      ErnieMoeOf300b(),
      // MiniMaxAI/MiniMax-M2, zai-org/GLM-4.7-Flash
      MiniMaxM2(),
      // XiaomiMiMo/MiMo-V2-Flash
      MiMoV2Flash(),
      Glm47Flash(),
      // tencent/Youtu-LLM-2B-Base, which has none
      YoutuLlm(),
      // mistralai/Mistral-Small-4-119B-2603, of which the text model
      MistralSmall4(),
      // upstage/Solar-Open-100B, LGAI-EXAONE/K-EXAONE-236B-A23B
      SolarOpen(),
      KExaone(),
      // rednote-hilab/dots.llm1.base, tencent/Hunyuan-A13B-Instruct, Hy3
      QwenOfShared("dots.llm1",
                   {62, 4096, 32, 32, 10944, 152064, 32768},
                   {128, 6, 1408, int64_t{2} * 1408},
                   1),
      QwenOfShared("hunyuan-a13b",
                   {32, 4096, 32, 8, 3072, 128167, 32768},
                   {64, 8, 3072, 3072},
                   0),
      QwenOfShared("hy3",
                   {80, 4096, 64, 8, 13312, 120832, 262'144},
                   {192, 8, 1536, 1536},
                   1),
      // JetBrains/Mellum2-12B-A2.5B-Base: three blocks of four have windows
      Windowed(QwenOfShared("mellum2-12b-a2.5b",
                            {28, 2304, 32, 4, 7168, 98304, 131072},
                            {64, 8, 896},
                            0),
               1024,
               21),
      // inclusionAI/Ling-lite-1.5, Ling-mini-2.0
      LingLite(),
      LingMini(),
      // arcee-ai/Trinity-Nano-*, Trinity-Mini, Trinity-Large-*
      Trinity("trinity-nano",
              {56, 1024, 8, 2, 3072, 200192, 131072},
              2048,
              {128, 8, 256, 256},
              2),
      Trinity("trinity-mini",
              {32, 2048, 32, 4, 6144, 200192, 131072},
              2048,
              {128, 8, 1024, 1024},
              2),
      Trinity("trinity-large",
              {60, 3072, 48, 8, 12288, 200192, 262'144},
              4096,
              {256, 4, 3072, 3072},
              6),
  };
}

}  // namespace trainfare::model::internal
