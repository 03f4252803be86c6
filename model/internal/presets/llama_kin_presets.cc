// Decoders of Llama's kind: RMSNorm, rotary positions, no experts.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

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

// Gemma Team 2026, "Gemma 4": where a block sees all its heads are twice as
// wide, so many of them are keys', which are values, too.
Architecture Gemma4(std::string name, const Dimensions& d, int64_t full_keys) {
  Architecture a = Gemma3(std::move(name), d, 256);
  a.full_head_size = 512;
  a.full_key_value_heads = full_keys;
  a.keys_are_values = a.value_norm = a.output_soft_cap = true;
  a.scaled_scores = false;
  return a;
}

// Gemma 4's small ones: every so many blocks one sees all, with no more heads of
// keys than others; the highest ones share keys and values, and each has
// embeddings of its own.
Architecture SmallGemma4(std::string name,
                         const Dimensions& d,
                         int64_t period,
                         int64_t sharing) {
  Architecture a = Gemma4(std::move(name), d, 0);
  a.keys_are_values = false;
  a.window = 512;
  a.windowed_layers = d.layers - d.layers / period;
  a.shared_key_value_layers = sharing;
  a.layer_embedding_size = 256;
  return a;
}

// Of these the smaller one has feed-forwards twice as wide in blocks that share.
Architecture Gemma4E2b() {
  Architecture a =
      SmallGemma4("gemma-4-e2b", {35, 1536, 8, 1, 6144, 262144, 131072}, 5, 20);
  a.upper_intermediate = 2 * a.intermediate;
  return a;
}

// The same with experts beside the feed-forward, which have norms of their own.
Architecture Gemma4WithExperts() {
  Architecture a = Experts(
      Gemma4("gemma-4-26b-a4b", {30, 2816, 16, 8, 2112, 262144, 262144}, 2),
      {128, 8, 704, 2112});
  a.expert_norms = true;
  return a;
}

// OLMo Team 2025: norms over outputs, and over all queries and keys.
Architecture Olmo2(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm_placement = NormPlacement::kOutputs;
  a.query_key_norm = QueryKeyNorm::kWhole;
  return a;
}

// OLMo Team 2025b, "Olmo 3": one block in four sees everything.
Architecture Olmo3(std::string name, const Dimensions& d) {
  return Windowed(Olmo2(std::move(name), d), 4096, d.layers - d.layers / 4);
}

// GLM-4-0414: norms before and behind.
Architecture Glm4(std::string name, const Dimensions& d) {
  Architecture a = Glm(std::move(name), d);
  a.norm_placement = NormPlacement::kBoth;
  return a;
}

// Its largest one has no biases.
Architecture Glm4Of32b() {
  Architecture a =
      Glm4("glm-4-32b-0414", {61, 6144, 48, 2, 23040, 151552, 32768});
  a.attention_bias = false;
  return a;
}

// GLM et al. 2024, "ChatGLM": GLM-4's block with one matrix for queries, keys
// and values, and one for both products of the gate.
Architecture ChatGlm(std::string name, const Dimensions& d) {
  Architecture a = Glm(std::move(name), d);
  a.separate_projections = false;
  a.joint_gate = true;
  return a;
}

// LG AI Research 2025, "EXAONE 4.0": norms over outputs, and over each head.
Architecture Exaone4(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm_placement = NormPlacement::kOutputs;
  a.query_key_norm = QueryKeyNorm::kHead;
  return a;
}

// ByteDance Seed Team 2025: biases of query, key and value, and dropout.
Architecture SeedOss() {
  Architecture a = HeadSize(
      Qwen2("seed-oss-36b", {64, 5120, 80, 8, 27648, 155136, 524'288}), 128);
  a.dropout = 0.1;
  return a;
}

// Arcee AI 2025: a square of ReLU in the place of a gate.
Architecture Afm() {
  Architecture a =
      HeadSize(Llama("afm-4.5b", {36, 2560, 20, 4, 18432, 128004, 65536}), 128);
  a.gated = false;
  a.activation = Activation::kReluSquared;
  return a;
}

// Swiss AI Initiative 2025: a norm over each head, xIELU in the place of a gate.
Architecture Apertus(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.query_key_norm = QueryKeyNorm::kHead;
  a.gated = false;
  a.activation = Activation::kXielu;
  return a;
}

// NAVER 2025: norms before and behind.
Architecture HyperClovaX() {
  Architecture a = HeadSize(Llama("hyperclovax-seed-think-14b",
                                  {38, 6144, 48, 8, 14336, 110592, 131072}),
                            128);
  a.norm_placement = NormPlacement::kBoth;
  return a;
}

// Sinha et al. 2025, "VaultGemma": Gemma 2's block without norms behind,
// windows and caps.
Architecture VaultGemma() {
  return Gemma("vaultgemma-1b", {26, 1152, 4, 4, 6912, 256000, 1024}, 256);
}

// Karpathy 2025: no norm has weights, embeddings have one, too, and so do
// queries and keys behind the rotation; a square of ReLU without a gate, and a
// cap.
Architecture NanoChat(std::string name, int64_t layers) {
  const int64_t hidden = 64 * layers;
  const int64_t heads = hidden / 128;
  Architecture a = Llama(
      std::move(name), {layers, hidden, heads, heads, 4 * hidden, 65536, 2048});
  a.norm_scale = false;
  a.embedding_layer_norm = true;
  a.query_key_norm = QueryKeyNorm::kRotated;
  a.gated = false;
  a.activation = Activation::kReluSquared;
  a.output_soft_cap = true;
  return a;
}

}  // namespace

// Long because it is a table: a row a model.
std::vector<Architecture> LlamaKinPresets() {
  return {
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
      // nvidia/Llama-3.1-Minitron-4B-Width-Base
      HeadSize(Llama("llama-3.1-minitron-4b-width",
                     {32, 3072, 32, 8, 9216, 128256, 131072}),
               128),
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
      // ibm-granite/granite-3.1-*-instruct
      Tied(Llama("granite-3.1-2b", {40, 2048, 32, 8, 8192, 49155, 131072})),
      Tied(Llama("granite-3.1-8b", {40, 4096, 32, 8, 12800, 49155, 131072})),
      // ibm-granite/granite-3.3-*-instruct
      Tied(Llama("granite-3.3-2b", {40, 2048, 32, 8, 8192, 49159, 131072})),
      Tied(Llama("granite-3.3-8b", {40, 4096, 32, 8, 12800, 49159, 131072})),
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
      // mistralai/Mistral-7B-Instruct-v0.2: the first one's words, no window
      Llama("mistral-7b-v0.2", {32, 4096, 32, 8, 14336, 32000, 32768}),
      // nvidia/Mistral-NeMo-Minitron-8B-Base
      HeadSize(Llama("mistral-nemo-minitron-8b",
                     {40, 4096, 32, 8, 11520, 131072, 8192}),
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
      // mistralai/Ministral-3-*-Base-2512, of which the text model
      HeadSize(Tied(Llama("ministral-3-3b",
                          {26, 3072, 32, 8, 9216, 131072, 262'144})),
               128),
      HeadSize(
          Llama("ministral-3-8b", {34, 4096, 32, 8, 14336, 131072, 262'144}),
          128),
      HeadSize(
          Llama("ministral-3-14b", {40, 5120, 32, 8, 16384, 131072, 262'144}),
          128),
      // Qwen/Qwen1.5-*, Qwen2.5-*, Qwen3-*
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
      Tied(Qwen3("qwen3-0.6b", {28, 1024, 16, 8, 3072, 151936, 40960})),
      Tied(Qwen3("qwen3-1.7b", {28, 2048, 16, 8, 6144, 151936, 40960})),
      Tied(Qwen3("qwen3-4b", {36, 2560, 32, 8, 9728, 151936, 40960})),
      Qwen3("qwen3-8b", {36, 4096, 32, 8, 12288, 151936, 40960}),
      Qwen3("qwen3-14b", {40, 5120, 40, 8, 17408, 151936, 40960}),
      Qwen3("qwen3-32b", {64, 5120, 64, 8, 25600, 151936, 40960}),
      // deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B: logits of their own
      Qwen2("deepseek-r1-distill-qwen-1.5b",
            {28, 1536, 12, 2, 8960, 151936, 131072}),
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
      // google/gemma-4-*, of which the text model
      Gemma4E2b(),
      SmallGemma4(
          "gemma-4-e4b", {42, 2560, 8, 2, 10240, 262144, 131072}, 6, 18),
      Gemma4("gemma-4-12b", {48, 3840, 16, 8, 15360, 262144, 262144}, 1),
      Gemma4WithExperts(),
      Gemma4("gemma-4-31b", {60, 5376, 32, 16, 21504, 262144, 262144}, 4),
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
      // allenai/OLMo-2-0425-1B, OLMo-2-1124-*, OLMo-2-0325-32B
      Olmo2("olmo-2-1b", {16, 2048, 16, 16, 8192, 100352, 4096}),
      Olmo2("olmo-2-7b", {32, 4096, 32, 32, 11008, 100352, 4096}),
      Olmo2("olmo-2-13b", {40, 5120, 40, 40, 13824, 100352, 4096}),
      Olmo2("olmo-2-32b", {64, 5120, 40, 8, 27648, 100352, 4096}),
      // allenai/Olmo-3-1025-7B, Olmo-3-1125-32B
      Olmo3("olmo-3-7b", {32, 4096, 32, 32, 11008, 100278, 65536}),
      Olmo3("olmo-3-32b", {64, 5120, 40, 8, 27648, 100278, 65536}),
      // zai-org/glm-4-9b-hf
      Glm("glm-4-9b", {40, 4096, 32, 2, 13696, 151552, 131072}),
      // zai-org/GLM-4-*-0414, chatglm3-6b
      Glm4("glm-4-9b-0414", {40, 4096, 32, 2, 13696, 151552, 32768}),
      Glm4Of32b(),
      ChatGlm("chatglm3-6b", {28, 4096, 32, 2, 13696, 65024, 8192}),
      // ByteDance-Seed/Seed-OSS-36B-Base
      SeedOss(),
      // LGAI-EXAONE/EXAONE-4.0-*: in the larger one, three blocks of four have
      // windows, and the fourth no positions
      Tied(Exaone4("exaone-4.0-1.2b", {30, 2048, 32, 8, 4096, 102400, 65536})),
      Unrotated(Windowed(Exaone4("exaone-4.0-32b",
                                 {64, 5120, 40, 8, 27392, 102400, 131072}),
                         4096,
                         48),
                16),
      // tencent/Hunyuan-7B-Pretrain: Qwen3's blocks
      Tied(Qwen3("hunyuan-7b", {32, 4096, 32, 8, 14336, 128167, 262'144})),
      // baidu/ERNIE-4.5-0.3B-PT
      Tied(HeadSize(
          Llama("ernie-4.5-0.3b", {18, 1024, 16, 2, 3072, 103424, 131072}),
          128)),
      // swiss-ai/Apertus-*-2509
      Apertus("apertus-8b", {32, 4096, 32, 8, 21504, 131072, 65536}),
      Apertus("apertus-70b", {80, 8192, 64, 8, 43008, 131072, 65536}),
      // arcee-ai/AFM-4.5B-Base
      Afm(),
      // naver-hyperclovax/HyperCLOVAX-SEED-Think-14B
      HyperClovaX(),
      // internlm/internlm3-8b-instruct
      HeadSize(Llama("internlm3-8b", {48, 4096, 32, 2, 10240, 128512, 32768}),
               128),
      // kyutai/helium-1-preview-2b, google/vaultgemma-1b
      Llama("helium-1-preview-2b", {24, 2560, 20, 20, 7040, 48000, 4096}),
      VaultGemma(),
      // nanochat-students/nanochat-d20, karpathy/nanochat-d32 and the next
      NanoChat("nanochat-d20", 20),
      NanoChat("nanochat-d32", 32),
      NanoChat("nanochat-d34", 34),
  };
}

}  // namespace trainfare::model::internal
