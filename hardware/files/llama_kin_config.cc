// Decoders of Llama's kind: RMSNorm, rotary positions, no experts.

#include <fmt/format.h>

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

Architecture ReadMistral(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  ReadWindow(c, a.layers, a, 4096);
  return a;
}

Architecture ReadGemma(const ConfigJson& c) {
  return ReadGemmas(c, UsualHeads(16));
}

// Gemma 2 without norms of what is added (Sinha et al. 2025, "VaultGemma").
Architecture ReadVaultGemma(const ConfigJson& c) {
  Architecture a = ReadGemmas(c, UsualHeads(4));
  ReadWindow(c, (a.layers + 1) / 2, a, 4096);
  a.attention_soft_cap = HasCap(c, "attn_logit_softcapping");
  a.output_soft_cap = HasCap(c, "final_logit_softcapping");
  return a;
}

Architecture ReadGemma2(const ConfigJson& c) {
  Architecture a = ReadVaultGemma(c);
  Ignore(c, {"sliding_window_size"});  // published files say it twice
  a.norm_placement = model::NormPlacement::kBoth;
  return a;
}

// The published text_config leaves out what is as in its class
// (Gemma3TextConfig of Transformers).
Architecture ReadGemma3(const ConfigJson& c) {
  Architecture usual;
  usual.layers = 26;
  usual.hidden = 2304;
  usual.heads = 8;
  usual.key_value_heads = 4;
  usual.intermediate = 9216;
  usual.vocabulary = 262'208;
  usual.positions = 131'072;
  Architecture a = ReadGemmas(c, usual);
  c.Expect("use_bidirectional_attention", false);
  Ignore(c, {"rope_local_base_freq"});
  ReadWindow(c, a.layers - a.layers / WindowPeriod(c, 6), a, 4096);
  a.norm_placement = model::NormPlacement::kBoth;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  c.Expect("attn_logit_softcapping", nullptr);
  c.Expect("final_logit_softcapping", nullptr);
  return a;
}

Architecture ReadOlmo2(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm_placement = model::NormPlacement::kOutputs;
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  return a;
}

// Every fourth block sees all, or as the file lists them.
Architecture ReadOlmo3(const ConfigJson& c) {
  Architecture a = ReadOlmo2(c);
  ReadWindow(c, a.layers - a.layers / 4, a, 4096);
  return a;
}

Architecture ReadPhi3(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  ReadWindow(c, a.layers, a);
  // What published files say beside: every block sees as far, no biases.
  c.Expect("full_attn_mod", 1);
  c.Expect("interpolate_factor", 1);
  c.Expect("lm_head_bias", false);
  const CountedDropout counted = {"attention_dropout", a.dropout};
  ExpectDropout(c, "resid_pdrop", 0.0, counted);
  ExpectDropout(c, "embd_pdrop", 0.0, counted);
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 1.0);
  return a;
}

Architecture ReadGlm4(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(2, 128));
  a.attention_bias = c.Flag("attention_bias", true);
  a.output_bias = false;
  a.norm_placement = model::NormPlacement::kBoth;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  return a;
}

Architecture ReadSeedOss(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  a.attention_bias = c.Flag("attention_bias", true);
  a.output_bias = c.Flag("attention_out_bias", false);
  a.dropout = c.Share("residual_dropout", 0.1);
  return a;
}

Architecture ReadErnie(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(2, 128));
  a.attention_bias = a.output_bias = a.feed_forward_bias =
      c.Flag("use_bias", false);
  return a;
}

// Norms of what is added; where there are windows, blocks that see all have no
// positions.
Architecture ReadExaone4(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(32));
  a.norm_placement = model::NormPlacement::kOutputs;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  Ignore(c, {"sliding_window_pattern"});
  ReadWindow(c, a.layers - a.layers / 4, a, 4096);
  if (a.windowed_layers > 0) a.unrotated_layers = a.layers - a.windowed_layers;
  return a;
}

// SmolLM3: every fourth block without positions, or those that a list of 0 and
// 1 says (Yang et al. 2025, "Rope to Nope and Back Again").
Architecture ReadSmolLm3(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(4));
  c.Expect("use_sliding_window", false);
  CountWords(c, "layer_types", "full_attention", a.layers);
  Ignore(c, {"max_window_layers", "sliding_window"});
  a.unrotated_layers = UnrotatedLayers(c, a.layers);
  return a;
}

Architecture ReadGlm(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(2, 128));
  a.attention_bias = c.Flag("attention_bias", true);
  a.output_bias = false;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  return a;
}

// Attention's output has no bias, whatever the file says.
Architecture ReadHelium(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(20, 128));
  a.output_bias = false;
  return a;
}

// Llama's block with a square of ReLU in the place of a gate (AFM-4.5B).
Architecture ReadArcee(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.gated = false;
  ReadActivation(c, "hidden_act", "relu2", a);
  return a;
}

// Mistral AI 2025, Ministral 3 and Devstral 2: queries are scaled by how far in
// they are, in passes that are there anyway.
Architecture ReadMinistral3(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  ReadWindow(c, a.layers, a);
  return a;
}

// Meta 2025, "CWM": Llama's blocks, one of four from the first on sees all.
Architecture ReadCwm(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8, 128));
  ReadWindow(c, a.layers - (a.layers + 3) / 4, a, 8192);
  // Its class has none, whatever the file says.
  a.attention_bias = a.output_bias = false;
  return a;
}

// NAVER 2025: Granite's scales, and norms of what is added.
Architecture ReadHyperClovaX(const ConfigJson& c) {
  Architecture a = ReadGranites(c);
  if (c.Flag("use_post_norm", true)) {
    a.norm_placement = model::NormPlacement::kBoth;
  }
  // What published files say beside, which no class reads.
  Ignore(c, {"attn_pdrop", "end_token_id", "summary_first_dropout"});
  return a;
}

// IBM 2026: Granite with windows and sinks.
Architecture ReadGraniteSwa(const ConfigJson& c) {
  Architecture a = ReadGranites(c, /*tied=*/true, UsualHeads(4));
  ReadWindow(c, a.layers - (a.layers + 3) / 4, a, 128);
  a.attention_sinks = true;
  a.unrotated_layers = BlocksWithoutBase(c, a.layers);
  return a;
}

// Karpathy 2025, "nanochat": no norm has weights, the embeddings have one, too,
// and queries and keys one behind the rotation; a square of ReLU without a
// gate.
Architecture ReadNanoChat(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm_scale = false;
  a.embedding_layer_norm = true;
  a.query_key_norm = model::QueryKeyNorm::kRotated;
  a.gated = false;
  ReadActivation(c, "hidden_act", "relu2", a);
  a.output_soft_cap = HasCap(c, "final_logit_softcapping");
  Ignore(c, {"logits_soft_cap"});  // the same, of files before the class
  return a;
}

// Swiss AI Initiative 2025, Apertus: xIELU in the place of a gate.
Architecture ReadApertus(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.query_key_norm = model::QueryKeyNorm::kHead;
  a.gated = false;
  ReadActivation(c, "hidden_act", "xielu", a);
  // What published files say beside: its class has one form of each.
  c.Expect("hidden_dropout", 0.0);
  c.Expect("mlp_bias", false);
  c.Expect("post_norm", false);
  c.Expect("qk_norm", true);
  return a;
}

constexpr std::array kLlamaKin = {
    ModelType{"apertus", &ReadApertus},
    ModelType{"nanochat", &ReadNanoChat},
    ModelType{"ministral3", &ReadMinistral3},
    ModelType{"hyperclovax", &ReadHyperClovaX},
    ModelType{"granite_swa", &ReadGraniteSwa},
    ModelType{"cwm", &ReadCwm},
    ModelType{"arcee", &ReadArcee},
    ModelType{"ernie4_5", &ReadErnie},
    ModelType{"exaone4", &ReadExaone4},
    ModelType{"gemma", &ReadGemma},
    ModelType{"gemma2", &ReadGemma2},
    ModelType{"gemma3_text", &ReadGemma3},
    ModelType{"glm", &ReadGlm},
    ModelType{"glm4", &ReadGlm4},
    ModelType{"granite", [](const ConfigJson& c) { return ReadGranites(c); }},
    ModelType{"helium", &ReadHelium},
    ModelType{"hunyuan_v1_dense", &ReadHunYuan},
    ModelType{"llama", [](const ConfigJson& c) { return ReadLlama(c); }},
    ModelType{"ministral", &ReadMistral},
    ModelType{"mistral", &ReadMistral},
    ModelType{"olmo2", &ReadOlmo2},
    ModelType{"olmo3", &ReadOlmo3},
    ModelType{"phi3", &ReadPhi3},
    ModelType{"qwen2", [](const ConfigJson& c) { return ReadQwen(c, false); }},
    // Of models of images, which change no block of theirs.
    ModelType{"qwen2_5_vl_text",
              [](const ConfigJson& c) { return ReadQwen(c, false, 8); }},
    ModelType{"qwen2_vl_text",
              [](const ConfigJson& c) { return ReadQwen(c, false, 8); }},
    ModelType{"qwen3", [](const ConfigJson& c) { return ReadQwen(c, true); }},
    ModelType{"qwen3_vl_text",
              [](const ConfigJson& c) { return ReadQwen(c, true); }},
    ModelType{"seed_oss", &ReadSeedOss},
    ModelType{"smollm3", &ReadSmolLm3},
    ModelType{"vaultgemma", &ReadVaultGemma},
};

}  // namespace

std::span<const ModelType> LlamaKinTypes() { return kLlamaKin; }

}  // namespace trainfare::hardware
