#include "model/decoder_presets.h"

#include <string>
#include <utility>

namespace trainfare::model {
namespace {

struct Dimensions {
  int64_t layers;
  int64_t hidden;
  int64_t heads;
  int64_t key_value_heads;
  int64_t intermediate;
  int64_t vocabulary;
  int64_t positions;
};

// Touvron et al. 2023: RMSNorm before, rotary positions, SwiGLU, no biases.
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

struct ExpertDimensions {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate = 0;
  int64_t shared = 0;  // of the shared experts together
};

Architecture Experts(Architecture a, const ExpertDimensions& e) {
  a.experts = e.count;
  a.experts_per_token = e.per_token;
  a.expert_intermediate = e.intermediate;
  a.shared_intermediate = e.shared;
  return a;
}

// Qwen Team 2024: biases of query, key and value alone.
Architecture Qwen2(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.attention_bias = true;
  return a;
}

// Qwen Team 2025: a norm over each head instead, heads of 128.
Architecture Qwen3(std::string name, const Dimensions& d) {
  Architecture a = HeadSize(Llama(std::move(name), d), 128);
  a.query_key_norm = QueryKeyNorm::kHead;
  return a;
}

Architecture QwenMoe() {
  Architecture a = Experts(
      Qwen2("qwen1.5-moe-a2.7b", {24, 2048, 16, 16, 5632, 151936, 8192}),
      {60, 4, 1408, 5632});
  a.shared_expert_gate = true;
  return a;
}

Architecture Gemma(std::string name, const Dimensions& d, int64_t head_size) {
  Architecture a = HeadSize(Tied(Llama(std::move(name), d)), head_size);
  a.activation = Activation::kGeluTanh;
  return a;
}

// Gemma Team 2024: norms before and behind, every other block a window.
Architecture Gemma2(std::string name, const Dimensions& d, int64_t head_size) {
  Architecture a =
      Windowed(Gemma(std::move(name), d, head_size), 4096, (d.layers + 1) / 2);
  a.norm_placement = NormPlacement::kBoth;
  a.attention_soft_cap = a.output_soft_cap = true;
  return a;
}

// Gemma Team 2025: one block in six sees everything.
Architecture Gemma3(std::string name,
                    const Dimensions& d,
                    int64_t head_size,
                    int64_t window = 1024) {
  Architecture a = Windowed(
      Gemma(std::move(name), d, head_size), window, d.layers - d.layers / 6);
  a.norm_placement = NormPlacement::kBoth;
  a.query_key_norm = QueryKeyNorm::kHead;
  return a;
}

// Groeneveld et al. 2024: norms without weights.
Architecture Olmo(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm = Norm::kLayer;
  a.norm_scale = false;
  return a;
}

// OLMo Team 2025: norms over outputs, and over all queries and keys.
Architecture Olmo2(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm_placement = NormPlacement::kOutputs;
  a.query_key_norm = QueryKeyNorm::kWhole;
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

// The part of each head that carries its position.
Architecture Rotated(Architecture a, int64_t rotary_head_size) {
  a.rotary_head_size = rotary_head_size;
  return a;
}

// GLM team 2024: biases of query, key and value, half of each head rotated.
Architecture Glm(std::string name, const Dimensions& d) {
  return Rotated(HeadSize(Qwen2(std::move(name), d), 128), 64);
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

// Stability AI 2024: LayerNorm, a quarter of each head rotated.
Architecture StableLm(std::string name, const Dimensions& d) {
  Architecture a = Rotated(Llama(std::move(name), d), d.hidden / d.heads / 4);
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  return a;
}

Architecture StableLm2() {
  Architecture a =
      StableLm("stablelm-2-1.6b", {24, 2048, 32, 32, 5632, 100352, 4096});
  a.attention_bias = true;
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
  a.expert_groups = groups.all;
  a.expert_groups_per_token = groups.per_token;
  a.head_size = 192;
  a.value_head_size = 128;
  a.rotary_head_size = 64;
  a.latent_query = latent_query;
  a.latent_key_value = 512;
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

// Black et al. 2022: LayerNorm, rotary positions over a quarter of each head,
// attention and feed-forward side by side; one matrix for query, key, value.
Architecture GptNeoX(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  a.attention_bias = a.output_bias = a.feed_forward_bias = true;
  a.separate_projections = false;
  a.parallel_block = true;
  a.activation = Activation::kGelu;
  a.gated = false;
  a.rotary_head_size = d.hidden / d.heads / 4;
  return a;
}

// Almazrouei et al. 2023: no biases, tied, whole heads rotated.
Architecture Falcon(std::string name, const Dimensions& d) {
  Architecture a = Rotated(Tied(GptNeoX(std::move(name), d)), 0);
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  return a;
}

// The smaller one has one norm a block.
Architecture Falcon7b() {
  Architecture a =
      Falcon("falcon-7b", {32, 4544, 71, 1, int64_t{4} * 4544, 65024, 2048});
  a.shared_norm = true;
  return a;
}

// Li et al. 2023: attention and feed-forward read one norm; logits with biases.
Architecture Phi(std::string name, const Dimensions& d, double dropout) {
  Architecture a = Rotated(GptNeoX(std::move(name), d), 32);
  a.separate_projections = true;
  a.shared_norm = true;
  a.activation = Activation::kGeluNew;
  a.logits_bias = true;
  a.dropout = dropout;
  return a;
}

// Wang & Komatsuzaki 2021: as Phi, attention without biases.
Architecture GptJ() {
  Architecture a =
      Rotated(Phi("gpt-j-6b", {28, 4096, 16, 16, 16384, 50400, 2048}, 0.0), 64);
  a.attention_bias = a.output_bias = false;
  return a;
}

// Lozhkov et al. 2024: LayerNorm and biases in Llama's place of them, no gate.
Architecture Starcoder2(std::string name, const Dimensions& d) {
  Architecture a = Windowed(Tied(Llama(std::move(name), d)), 4096, d.layers);
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  a.attention_bias = a.output_bias = a.feed_forward_bias = true;
  a.gated = false;
  a.activation = Activation::kGeluTanh;
  return a;
}

// Le Scao et al. 2022: ALiBi, and a norm of the embeddings.
Architecture Bloom(std::string name,
                   int64_t layers,
                   int64_t hidden,
                   int64_t heads) {
  Architecture a = Gpt2(std::move(name), layers, hidden, heads);
  a.vocabulary = 250880;
  a.positions = 0;
  a.embedding_layer_norm = true;
  a.position_kind = PositionKind::kAlibi;
  a.activation = Activation::kGeluTanh;
  a.dropout = 0.0;
  return a;
}

// mosaicml/mpt-7b: no biases, the distance to a token in its score (ALiBi).
Architecture Mpt7b() {
  Architecture a = Gpt2("mpt-7b", 32, 4096, 32);
  a.vocabulary = 50432;
  a.positions = 2048;
  a.position_kind = PositionKind::kAlibi;
  a.activation = Activation::kGelu;
  a.norm_bias = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.dropout = 0;
  return a;
}

// Zhang et al. 2022: as GPT-2, with ReLU and three projections; two rows of the
// position table are padding.
Architecture Opt(std::string name,
                 int64_t layers,
                 int64_t hidden,
                 int64_t heads) {
  Architecture a = Gpt2(std::move(name), layers, hidden, heads);
  a.vocabulary = 50272;
  a.positions = 2050;
  a.position_offset = 2;
  a.separate_projections = true;
  a.activation = Activation::kRelu;
  return a;
}

// The one of them with norms behind attention and feed-forward.
Architecture Opt350m() {
  Architecture a = Opt("opt-350m", 24, 1024, 16);
  a.embedding_size = 512;
  a.norm_placement = NormPlacement::kAfter;
  return a;
}

}  // namespace

Architecture Gpt2(std::string name,
                  int64_t layers,
                  int64_t hidden,
                  int64_t heads) {
  Architecture a;
  a.name = std::move(name);
  a.family = Family::kDecoder;
  a.layers = layers;
  a.hidden = hidden;
  a.heads = heads;
  a.intermediate = 4 * hidden;
  a.vocabulary = 50257;
  a.positions = 1024;
  a.embedding_layer_norm = false;
  a.activation = Activation::kGeluNew;
  a.pooler = false;
  a.head = Head::kCausalLanguageModel;
  return a;
}

// bigcode's GPTBigCode (Ben Allal et al. 2023): GPT-2 with one head of keys and
// values.
Architecture BigCode(std::string name,
                     int64_t layers,
                     int64_t hidden,
                     int64_t heads,
                     int64_t vocabulary,
                     int64_t positions) {
  Architecture a = Gpt2(std::move(name), layers, hidden, heads);
  a.vocabulary = vocabulary;
  a.positions = positions;
  a.key_value_heads = 1;
  a.activation = Activation::kGeluTanh;
  a.narrow_logits = true;
  return a;
}

// Long because it is a table: a row a model.
std::vector<Architecture> DecoderPresets() {
  return {
      // openai-community/gpt2*
      Gpt2("distilgpt2", 6, 768, 12),
      Gpt2("gpt2", 12, 768, 12),
      Gpt2("gpt2-medium", 24, 1024, 16),
      Gpt2("gpt2-large", 36, 1280, 20),
      Gpt2("gpt2-xl", 48, 1600, 25),
      // bigcode: gpt_bigcode-santacoder, starcoder
      BigCode("santacoder", 24, 2048, 16, 49280, 2048),
      BigCode("starcoder", 40, 6144, 48, 49152, 8192),
      // bigcode/starcoder2-*
      Starcoder2("starcoder2-3b", {30, 3072, 24, 2, 12288, 49152, 16384}),
      Starcoder2("starcoder2-7b", {32, 4608, 36, 4, 18432, 49152, 16384}),
      // huggyllama: the first Llama (7 and 13 B are Llama 2's with 2048 tokens)
      Llama("llama-30b", {60, 6656, 52, 52, 17920, 32000, 2048}),
      Llama("llama-65b", {80, 8192, 64, 64, 22016, 32000, 2048}),
      // meta-llama: Llama-2-*-hf, Meta-Llama-3-8B, Llama-3.1-*, Llama-3.2-*
      Llama("llama-2-7b", {32, 4096, 32, 32, 11008, 32000, 4096}),
      Llama("llama-2-13b", {40, 5120, 40, 40, 13824, 32000, 4096}),
      Llama("llama-2-70b", {80, 8192, 64, 8, 28672, 32000, 4096}),
      Llama("llama-3-8b", {32, 4096, 32, 8, 14336, 128256, 8192}),
      Llama("llama-3-70b", {80, 8192, 64, 8, 28672, 128256, 8192}),
      Llama("llama-3.1-8b", {32, 4096, 32, 8, 14336, 128256, 131072}),
      Llama("llama-3.1-70b", {80, 8192, 64, 8, 28672, 128256, 131072}),
      Llama("llama-3.1-405b", {126, 16384, 128, 8, 53248, 128256, 131072}),
      Tied(Llama("llama-3.2-1b", {16, 2048, 32, 8, 8192, 128256, 131072})),
      Tied(Llama("llama-3.2-3b", {28, 3072, 24, 8, 8192, 128256, 131072})),
      // meta-llama/Llama-4-*-Instruct, of which the text model
      Llama4Scout(),
      Llama4("llama-4-maverick-17b-128e",
             {48, 5120, 40, 8, 16384, 202048, 1'048'576},
             128,
             2),
      // codellama/CodeLlama-*-hf
      Llama("codellama-7b", {32, 4096, 32, 32, 11008, 32016, 16384}),
      Llama("codellama-13b", {40, 5120, 40, 40, 13824, 32016, 16384}),
      Llama("codellama-34b", {48, 8192, 64, 8, 22016, 32000, 16384}),
      // 01-ai/Yi-*, deepseek-ai/deepseek-llm-*, upstage/SOLAR-10.7B-v1.0
      Llama("yi-6b", {32, 4096, 32, 4, 11008, 64000, 4096}),
      Llama("yi-1.5-9b", {48, 4096, 32, 4, 11008, 64000, 4096}),
      Llama("yi-34b", {60, 7168, 56, 8, 20480, 64000, 4096}),
      Llama("deepseek-llm-7b", {30, 4096, 32, 32, 11008, 102400, 4096}),
      Llama("deepseek-llm-67b", {95, 8192, 64, 8, 22016, 102400, 4096}),
      Llama("solar-10.7b", {48, 4096, 32, 8, 14336, 32000, 4096}),
      // ibm-granite/granite-3.1-*-base
      Tied(Llama("granite-3.1-2b", {40, 2048, 32, 8, 8192, 49155, 131072})),
      Tied(Llama("granite-3.1-8b", {40, 4096, 32, 8, 12800, 49155, 131072})),
      // stabilityai/stablelm-3b-4e1t, stablelm-2-1_6b
      StableLm("stablelm-3b", {32, 2560, 32, 32, 6912, 50304, 4096}),
      StableLm2(),
      // TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T
      Llama("tinyllama-1.1b", {22, 2048, 32, 4, 5632, 32000, 2048}),
      // HuggingFaceTB/SmolLM2-*
      Tied(Llama("smollm2-135m", {30, 576, 9, 3, 1536, 49152, 8192})),
      Tied(Llama("smollm2-360m", {32, 960, 15, 5, 2560, 49152, 8192})),
      Tied(Llama("smollm2-1.7b", {24, 2048, 32, 32, 8192, 49152, 8192})),
      // HuggingFaceTB/SmolLM3-3B: every fourth block without positions
      Unrotated(
          Tied(Llama("smollm3-3b", {36, 2048, 16, 4, 11008, 128256, 65536})),
          9),
      // mistralai/Mistral-7B-v0.1 (window), v0.3, Mistral-Nemo-Base-2407
      Windowed(Llama("mistral-7b-v0.1", {32, 4096, 32, 8, 14336, 32000, 32768}),
               4096,
               32),
      Llama("mistral-7b", {32, 4096, 32, 8, 14336, 32768, 32768}),
      HeadSize(
          Llama("mistral-nemo-12b", {40, 5120, 32, 8, 14336, 131072, 131072}),
          128),
      // Ministral-8B-Instruct-2410, Codestral-22B-v0.1, Mistral-Small-24B-Base,
      // Mistral-Large-Instruct-2407
      HeadSize(Llama("ministral-8b", {36, 4096, 32, 8, 12288, 131072, 32768}),
               128),
      Llama("codestral-22b", {56, 6144, 48, 8, 16384, 32768, 32768}),
      HeadSize(
          Llama("mistral-small-24b", {40, 5120, 32, 8, 32768, 131072, 32768}),
          128),
      Llama("mistral-large-123b", {88, 12288, 96, 8, 28672, 32768, 131072}),
      // mistralai/Mixtral-8x7B-v0.1, 8x22B-v0.1
      Experts(Llama("mixtral-8x7b", {32, 4096, 32, 8, 14336, 32000, 32768}),
              {8, 2, 14336}),
      Experts(Llama("mixtral-8x22b", {56, 6144, 48, 8, 16384, 32000, 65536}),
              {8, 2, 16384}),
      // Its instructed checkpoints and v0.3
      Experts(
          Llama("mixtral-8x22b-v0.3", {56, 6144, 48, 8, 16384, 32768, 65536}),
          {8, 2, 16384}),
      // Qwen/Qwen1.5-*, Qwen2.5-*, Qwen3-*, Qwen1.5-MoE-A2.7B
      Tied(Qwen2("qwen1.5-0.5b", {24, 1024, 16, 16, 2816, 151936, 32768})),
      Qwen2("qwen1.5-1.8b", {24, 2048, 16, 16, 5504, 151936, 32768}),
      Qwen2("qwen1.5-4b", {40, 2560, 20, 20, 6912, 151936, 32768}),
      Qwen2("qwen1.5-7b", {32, 4096, 32, 32, 11008, 151936, 32768}),
      Qwen2("qwen1.5-14b", {40, 5120, 40, 40, 13696, 152064, 32768}),
      Tied(Qwen2("qwen2.5-0.5b", {24, 896, 14, 2, 4864, 151936, 32768})),
      Tied(Qwen2("qwen2.5-1.5b", {28, 1536, 12, 2, 8960, 151936, 131072})),
      Tied(Qwen2("qwen2.5-3b", {36, 2048, 16, 2, 11008, 151936, 32768})),
      Qwen2("qwen2.5-7b", {28, 3584, 28, 4, 18944, 152064, 131072}),
      Qwen2("qwen2.5-14b", {48, 5120, 40, 8, 13824, 152064, 131072}),
      Qwen2("qwen2.5-32b", {64, 5120, 40, 8, 27648, 152064, 131072}),
      Qwen2("qwen2.5-72b", {80, 8192, 64, 8, 29568, 152064, 131072}),
      // deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B: logits of their own
      Qwen2("deepseek-r1-distill-qwen-1.5b",
            {28, 1536, 12, 2, 8960, 151936, 131072}),
      Tied(Qwen3("qwen3-0.6b", {28, 1024, 16, 8, 3072, 151936, 40960})),
      Tied(Qwen3("qwen3-1.7b", {28, 2048, 16, 8, 6144, 151936, 40960})),
      Tied(Qwen3("qwen3-4b", {36, 2560, 32, 8, 9728, 151936, 40960})),
      Qwen3("qwen3-8b", {36, 4096, 32, 8, 12288, 151936, 40960}),
      Qwen3("qwen3-14b", {40, 5120, 40, 8, 17408, 151936, 40960}),
      Qwen3("qwen3-32b", {64, 5120, 64, 8, 25600, 151936, 40960}),
      Experts(Qwen3("qwen3-30b-a3b", {48, 2048, 32, 4, 6144, 151936, 40960}),
              {128, 8, 768}),
      Experts(Qwen3("qwen3-235b-a22b", {94, 4096, 64, 4, 12288, 151936, 40960}),
              {128, 8, 1536}),
      Experts(Qwen3("qwen3-coder-480b-a35b",
                    {62, 6144, 96, 8, 8192, 151936, 262144}),
              {160, 8, 2560}),
      QwenMoe(),
      // google/gemma-*, gemma-2-*, gemma-3-*-pt, of which the text model
      Gemma("gemma-2b", {18, 2048, 8, 1, 16384, 256000, 8192}, 256),
      Gemma("gemma-7b", {28, 3072, 16, 16, 24576, 256000, 8192}, 256),
      Gemma2("gemma-2-2b", {26, 2304, 8, 4, 9216, 256000, 8192}, 256),
      Gemma2("gemma-2-9b", {42, 3584, 16, 8, 14336, 256000, 8192}, 256),
      Gemma2("gemma-2-27b", {46, 4608, 32, 16, 36864, 256000, 8192}, 128),
      Gemma3("gemma-3-270m", {18, 640, 4, 1, 2048, 262144, 32768}, 256, 512),
      Gemma3("gemma-3-1b", {26, 1152, 4, 1, 6912, 262144, 32768}, 256, 512),
      Gemma3("gemma-3-4b", {34, 2560, 8, 4, 10240, 262208, 131072}, 256),
      Gemma3("gemma-3-12b", {48, 3840, 16, 8, 15360, 262208, 131072}, 256),
      Gemma3("gemma-3-27b", {62, 5376, 32, 16, 21504, 262208, 131072}, 128),
      // microsoft/phi-1_5, phi-2
      Phi("phi-1.5", {24, 2048, 32, 32, 8192, 51200, 2048}, 0.0),
      Phi("phi-2", {32, 2560, 32, 32, 10240, 51200, 2048}, 0.1),
      // Phi-3-mini-4k-instruct, Phi-3.5-mini-instruct, whose window of 262144 is
      // all, Phi-3-medium-4k-instruct, Phi-4-mini, phi-4
      Windowed(
          Llama("phi-3-mini", {32, 3072, 32, 32, 8192, 32064, 4096}), 2047, 32),
      Llama("phi-3.5-mini", {32, 3072, 32, 32, 8192, 32064, 131072}),
      Windowed(Llama("phi-3-medium", {40, 5120, 40, 10, 17920, 32064, 4096}),
               2047,
               40),
      Rotated(
          Tied(Llama("phi-4-mini", {32, 3072, 24, 8, 8192, 200064, 131072})),
          96),
      Llama("phi-4", {40, 5120, 40, 10, 17920, 100352, 16384}),
      // microsoft/Phi-3.5-MoE-instruct, databricks/dbrx-base
      PhiMoe(),
      Dbrx(),
      // allenai/OLMo-*-hf, OLMo-2-0425-1B, OLMo-2-1124-*, OLMo-2-0325-32B,
      // OLMoE-1B-7B-0924
      Tied(Olmo("olmo-1b", {16, 2048, 16, 16, 8192, 50304, 2048})),
      Olmo("olmo-7b", {32, 4096, 32, 32, 11008, 50304, 2048}),
      Olmo2("olmo-2-1b", {16, 2048, 16, 16, 8192, 100352, 4096}),
      Olmo2("olmo-2-7b", {32, 4096, 32, 32, 11008, 100352, 4096}),
      Olmo2("olmo-2-13b", {40, 5120, 40, 40, 13824, 100352, 4096}),
      Olmo2("olmo-2-32b", {64, 5120, 40, 8, 27648, 100352, 4096}),
      Olmoe(),
      // zai-org/glm-4-9b-hf, GLM-4.5-Air, GLM-4.5
      Glm("glm-4-9b", {40, 4096, 32, 2, 13696, 151552, 131072}),
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
      // EleutherAI/gpt-j-6b, pythia-*, gpt-neox-20b
      GptJ(),
      GptNeoX("pythia-70m", {6, 512, 8, 8, 2048, 50304, 2048}),
      GptNeoX("pythia-160m", {12, 768, 12, 12, 3072, 50304, 2048}),
      GptNeoX("pythia-410m", {24, 1024, 16, 16, 4096, 50304, 2048}),
      GptNeoX("pythia-1b", {16, 2048, 8, 8, 8192, 50304, 2048}),
      GptNeoX("pythia-1.4b", {24, 2048, 16, 16, 8192, 50304, 2048}),
      GptNeoX("pythia-2.8b", {32, 2560, 32, 32, 10240, 50304, 2048}),
      GptNeoX("pythia-6.9b", {32, 4096, 32, 32, 16384, 50432, 2048}),
      GptNeoX("pythia-12b", {36, 5120, 40, 40, 20480, 50688, 2048}),
      GptNeoX("gpt-neox-20b", {44, 6144, 64, 64, 24576, 50432, 2048}),
      // tiiuae/falcon-7b, falcon-40b
      Falcon7b(),
      Falcon("falcon-40b", {60, 8192, 128, 8, int64_t{4} * 8192, 65024, 2048}),
      // bigscience/bloom-*
      Bloom("bloom-560m", 24, 1024, 16),
      Bloom("bloom-1b1", 24, 1536, 16),
      Bloom("bloom-1b7", 24, 2048, 16),
      Bloom("bloom-3b", 30, 2560, 32),
      Bloom("bloom-7b1", 30, 4096, 32),
      Bloom("bloom-176b", 70, 14336, 112),
      // mosaicml/mpt-7b
      Mpt7b(),
      // facebook/opt-*
      Opt("opt-125m", 12, 768, 12),
      Opt350m(),
      Opt("opt-1.3b", 24, 2048, 32),
      Opt("opt-2.7b", 32, 2560, 32),
      Opt("opt-6.7b", 32, 4096, 32),
      Opt("opt-13b", 40, 5120, 40),
      Opt("opt-30b", 48, 7168, 56),
      Opt("opt-66b", 64, 9216, 72),
  };
}

}  // namespace trainfare::model
