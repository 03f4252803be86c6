// Decoders with LayerNorm: GPT-2 and those after it, and others.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

// Radford et al. 2019.
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

// Groeneveld et al. 2024: norms without weights.
Architecture Olmo(std::string name, const Dimensions& d) {
  Architecture a = Llama(std::move(name), d);
  a.norm = Norm::kLayer;
  a.norm_scale = false;
  return a;
}

// Parmar et al. 2024, "Nemotron-4 15B", NVIDIA 2024, "Nemotron-4 340B", and
// Muralidharan et al. 2024, "Minitron": a square of ReLU, no gate, half of each
// head rotated.
Architecture Nemotron(std::string name,
                      const Dimensions& d,
                      int64_t head_size) {
  Architecture a =
      Rotated(HeadSize(Llama(std::move(name), d), head_size), head_size / 2);
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  a.activation = Activation::kReluSquared;
  return a;
}

// Cohere 2024: attention and feed-forward read one norm, which has no shift.
Architecture Cohere(std::string name, const Dimensions& d) {
  Architecture a = Tied(Llama(std::move(name), d));
  a.norm = Norm::kLayer;
  a.parallel_block = a.shared_norm = true;
  return a;
}

// The largest of the first ones has norms of each head's own.
Architecture CommandRPlus() {
  Architecture a =
      Cohere("command-r-plus", {64, 12288, 96, 8, 33792, 256000, 131072});
  a.query_key_norm = QueryKeyNorm::kEachHead;
  return a;
}

// Cohere 2025, "Command A": three blocks of four have windows, and the fourth
// no positions.
Architecture Cohere2(std::string name, const Dimensions& d) {
  return Unrotated(
      Windowed(Cohere(std::move(name), d), 4096, d.layers - d.layers / 4),
      d.layers / 4);
}

// Inception and MBZUAI 2025: biases everywhere but of logits, and a square of
// ReLU.
Architecture Jais2() {
  Architecture a = Llama("jais-2-8b", {32, 3328, 26, 26, 26624, 150272, 8192});
  a.norm = Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  a.activation = Activation::kReluSquared;
  a.attention_bias = a.output_bias = a.feed_forward_bias = true;
  return a;
}

}  // namespace

// Long because it is a table: a row a model.
std::vector<Architecture> LayerNormPresets() {
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
      // stabilityai/stablelm-3b-4e1t, stablelm-2-1_6b
      StableLm("stablelm-3b", {32, 2560, 32, 32, 6912, 50304, 4096}),
      StableLm2(),
      // microsoft/phi-1_5, phi-2
      Phi("phi-1.5", {24, 2048, 32, 32, 8192, 51200, 2048}, 0.0),
      Phi("phi-2", {32, 2560, 32, 32, 10240, 51200, 2048}, 0.1),
      // allenai/OLMo-*-hf
      Tied(Olmo("olmo-1b", {16, 2048, 16, 16, 8192, 50304, 2048})),
      Olmo("olmo-7b", {32, 4096, 32, 32, 11008, 50304, 2048}),
      // nvidia: NeMo's Nemotron3Config8B (nemotron-3-8b-base-4k), Nemotron-4-15B
      // (Nemotron4Config15B), Nemotron-4-340B-Base, Minitron-*-Base
      Nemotron("nemotron-3-8b", {32, 4096, 32, 32, 16384, 256000, 4096}, 128),
      Nemotron("nemotron-4-15b", {32, 6144, 48, 8, 24576, 256000, 4096}, 128),
      Nemotron("nemotron-4-340b", {96, 18432, 96, 8, 73728, 256000, 4096}, 192),
      Nemotron("minitron-4b", {32, 3072, 24, 8, 9216, 256000, 4096}, 128),
      Nemotron("minitron-8b", {32, 4096, 48, 8, 16384, 256000, 4096}, 128),
      // CohereLabs/c4ai-command-r-v01, -08-2024, -plus; aya-expanse-8b
      Cohere("command-r-v01", {40, 8192, 64, 64, 22528, 256000, 131072}),
      Cohere("command-r-08-2024", {40, 8192, 64, 8, 24576, 256000, 131072}),
      CommandRPlus(),
      Cohere("aya-expanse-8b", {32, 4096, 32, 8, 14336, 256000, 8192}),
      // CohereLabs/c4ai-command-r7b-12-2024, c4ai-command-a-03-2025
      Cohere2("command-r7b-12-2024", {32, 4096, 32, 8, 14336, 256000, 131072}),
      Cohere2("command-a-03-2025", {64, 12288, 96, 8, 36864, 256000, 262144}),
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
      // inceptionai/Jais-2-8B-Chat
      Jais2(),
  };
}

}  // namespace trainfare::model::internal
