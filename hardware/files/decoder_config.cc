#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/config_json.h"
#include "hardware/files/json_text.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// How many of a list of words, one a block, are this one; nullopt without the
// list.
std::optional<int64_t> CountWords(const ConfigJson& c,
                                  const char* key,
                                  std::string_view word,
                                  int64_t layers) {
  if (!c.Has(key)) return std::nullopt;
  constexpr std::string_view kFull = "full_attention";
  int64_t count = 0;
  int64_t block = 0;
  for (const json& one : c.List(key, layers, "words")) {
    if (one == word) {
      ++count;
    } else if (one != kFull) {
      c.Fail(fmt::format("{}[{}]", key, block),
             fmt::format("expected {}{}, got {}; other blocks are not counted",
                         kFull,
                         word == kFull ? "" : fmt::format(" or {}", word),
                         ShownJson(one)));
    }
    ++block;
  }
  return count;
}

// What a type's class has where its file does not say (its defaults in
// Transformers); null is as many keys as heads, and as wide as they divide.
Architecture UsualHeads(int64_t key_value_heads, int64_t head_size = 0) {
  Architecture usual;
  usual.key_value_heads = key_value_heads;
  usual.head_size = head_size;
  return usual;
}

int64_t KeyValueHeads(const ConfigJson& c,
                      const Architecture& a,
                      const Architecture& usual) {
  const bool of_class =
      usual.key_value_heads > 0 && !c.IsNull("num_key_value_heads");
  return c.PositiveCount("num_key_value_heads",
                         of_class ? usual.key_value_heads : a.heads);
}

// What the decoders of Llama's kind share.
Architecture ReadLlama(const ConfigJson& c,
                       bool tied = false,
                       const Architecture& usual = {}) {
  Architecture a;
  a.family = model::Family::kDecoder;
  ReadSizes(c, a, usual);
  a.key_value_heads = KeyValueHeads(c, a, usual);
  a.head_size =
      c.IsNull("head_dim") ? 0 : c.PositiveCount("head_dim", usual.head_size);
  a.embedding_layer_norm = a.pooler = false;
  a.separate_projections = true;
  a.head = model::Head::kCausalLanguageModel;
  a.dropout = c.Share("attention_dropout");
  a.norm = model::Norm::kRms;
  a.norm_bias = false;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = model::PositionKind::kRotary;
  a.attention_bias = c.Flag("attention_bias", false);
  a.output_bias = a.attention_bias;
  a.feed_forward_bias = c.Flag("mlp_bias", false);
  ReadActivation(c, "hidden_act", "silu", a);
  a.gated = true;
  a.untied_output = !c.Flag("tie_word_embeddings", tied);
  return a;
}

// `layers`: those with a window where the file does not list them; `usual`: how
// long it is where the file does not say, null is none. One beyond the
// positions, as classes have it for small models, sees them all.
void ReadWindow(const ConfigJson& c,
                int64_t layers,
                Architecture& a,
                int64_t usual = 0) {
  const auto listed =
      CountWords(c, "layer_types", "sliding_attention", a.layers);
  const int64_t window =
      c.IsNull("sliding_window") ? 0 : c.Count("sliding_window", usual);
  a.windowed_layers = window > 0 ? listed.value_or(layers) : 0;
  a.window = a.windowed_layers > 0 ? std::min(window, a.positions) : 0;
}

// Of so many blocks one sees all; Transformers writes the older key with a line
// before it.
int64_t WindowPeriod(const ConfigJson& c, int64_t usual) {
  const char* key = c.Has("_sliding_window_pattern") ? "_sliding_window_pattern"
                                                     : "sliding_window_pattern";
  return c.PositiveCount(key, usual);
}

Architecture ReadMistral(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  ReadWindow(c, a.layers, a, 4096);
  return a;
}

Architecture ReadMixtral(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  ReadWindow(c, a.layers, a);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  return a;
}

// A window counts only where use_sliding_window says so, above the first
// max_window_layers blocks.
Architecture ReadQwen(const ConfigJson& c,
                      bool version_3,
                      int64_t key_value_heads = 32) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(key_value_heads));
  c.Expect("use_mrope", false);
  const int64_t full = c.Count("max_window_layers", 28);
  ReadWindow(c, std::max<int64_t>(0, a.layers - full), a);
  if (!c.Flag("use_sliding_window", false)) a.window = a.windowed_layers = 0;
  if (version_3) {
    if (a.head_size == 0) a.head_size = 128;
    a.query_key_norm = model::QueryKeyNorm::kHead;
  } else {
    a.attention_bias = true;  // of query, key and value, without a key
    a.output_bias = false;
  }
  return a;
}

Architecture ReadQwenMoe(const ConfigJson& c, bool version_3) {
  Architecture a = ReadQwen(c, version_3, version_3 ? 4 : 16);
  a.head_size = c.PositiveCount("head_dim", 0);  // without the other's default
  a.experts = c.Count("num_experts", version_3 ? 128 : 60);
  a.experts_per_token = c.Count("num_experts_per_tok", version_3 ? 8 : 4);
  a.expert_intermediate =
      c.Count("moe_intermediate_size", version_3 ? 768 : 1408);
  c.Expect("decoder_sparse_step", 1);
  c.Expect("mlp_only_layers", json::array());
  if (!version_3) {
    a.attention_bias = c.Flag("qkv_bias", true);
    a.shared_intermediate = c.Count("shared_expert_intermediate_size", 5632);
    a.shared_expert_gate = true;
  }
  return a;
}

Architecture ReadGemmas(const ConfigJson& c, const Architecture& usual) {
  Architecture a = ReadLlama(c, /*tied=*/true, usual);
  if (a.head_size == 0) a.head_size = 256;
  // The older key, and the one that takes its place.
  ReadActivation(
      c,
      c.Has("hidden_activation") ? "hidden_activation" : "hidden_act",
      "gelu_pytorch_tanh",
      a);
  if (a.activation == model::Activation::kGelu) {
    a.activation = model::Activation::kGeluTanh;
  }
  return a;
}

Architecture ReadGemma(const ConfigJson& c) {
  return ReadGemmas(c, UsualHeads(16));
}

// Null is none.
bool HasCap(const ConfigJson& c, const char* key) {
  return c.Positive(key, /*fallback=*/0.0) > 0;
}

Architecture ReadGemma2(const ConfigJson& c) {
  Architecture a = ReadGemmas(c, UsualHeads(4));
  ReadWindow(c, (a.layers + 1) / 2, a, 4096);
  a.norm_placement = model::NormPlacement::kBoth;
  a.attention_soft_cap = HasCap(c, "attn_logit_softcapping");
  a.output_soft_cap = HasCap(c, "final_logit_softcapping");
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

Architecture ReadOlmoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  a.experts = c.Count("num_experts", 64);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = a.intermediate;
  c.Expect("clip_qkv", nullptr);
  return a;
}

Architecture ReadDeepSeek(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.output_bias = a.attention_bias;
  a.key_value_heads = 0;
  const int64_t plain = c.Count("qk_nope_head_dim", 128);
  a.rotary_head_size = c.Count("qk_rope_head_dim", 64);
  a.head_size = plain + a.rotary_head_size;
  a.value_head_size = c.Count("v_head_dim", 128);
  a.latent_query = c.Count("q_lora_rank", 0);
  a.latent_key_value = c.Count("kv_lora_rank", 512);
  a.experts = c.Count("n_routed_experts", 0);
  a.experts_per_token = c.Count("num_experts_per_tok");
  a.expert_intermediate = c.Count("moe_intermediate_size");
  a.shared_intermediate =
      c.Count("n_shared_experts", 0) * a.expert_intermediate;
  a.dense_layers = c.Count("first_k_dense_replace", 0);
  c.Expect("moe_layer_freq", 1);
  c.Expect("qk_head_dim", a.head_size);
  // Weights come in fp8 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

// Keys that scale what a block adds, in passes that are there anyway.
Architecture ReadGranites(const ConfigJson& c, bool tied) {
  Ignore(c,
         {"attention_multiplier",
          "embedding_multiplier",
          "logits_scaling",
          "residual_multiplier"});
  return ReadLlama(c, tied);
}

Architecture ReadGranite(const ConfigJson& c) {
  return ReadGranites(c, /*tied=*/true);
}

Architecture ReadGraniteMoe(const ConfigJson& c) {
  Architecture a = ReadGranites(c, /*tied=*/false);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  c.Expect("position_embedding_type", "rope");
  return a;
}

// Wang & Komatsuzaki's and OpenAI's blocks under today's positions: LayerNorm
// with biases and no gate.
void SetLayerNorm(Architecture& a, bool bias) {
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = bias;
}

Architecture ReadStarcoder2(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(2));
  SetLayerNorm(a, c.Flag("use_bias", true));
  ReadActivation(c, "hidden_act", "gelu_pytorch_tanh", a);
  ReadWindow(c, a.layers, a);
  c.Share("residual_dropout");
  c.Share("embedding_dropout");
  c.Has("norm_epsilon");
  // What published files keep of the type before, which nothing reads.
  Ignore(c,
         {"activation_function",
          "attention_softmax_in_fp32",
          "scale_attention_softmax_in_fp32",
          "scale_attn_weights"});
  c.Expect("mlp_type", "default");
  c.Expect("norm_type", "layer_norm");
  return a;
}

// The part of each head that carries its position.
int64_t RotarySize(const Architecture& a, double share) {
  return static_cast<int64_t>(static_cast<double>(a.query_head_size()) * share);
}

Architecture ReadPhi3(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  ReadWindow(c, a.layers, a);
  // What published files say beside: every block sees as far, no biases.
  c.Expect("full_attn_mod", 1);
  c.Expect("interpolate_factor", 1);
  c.Expect("lm_head_bias", false);
  const double share = c.Part("partial_rotary_factor", 1.0);
  if (share < 1.0) a.rotary_head_size = RotarySize(a, share);
  return a;
}

Architecture ReadGptNeoX(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, c.Flag("attention_bias", true));
  a.feed_forward_bias = true;
  a.separate_projections = false;
  a.parallel_block = c.Flag("use_parallel_residual", true);
  ReadActivation(c, "hidden_act", "gelu", a);
  a.rotary_head_size = RotarySize(a, c.Part("rotary_pct", 0.25));
  a.dropout = c.Share("hidden_dropout");
  // Published files have shares of the class before, which nothing reads.
  Ignore(c,
         {"attention_probs_dropout_prob",
          "classifier_dropout",
          "hidden_dropout_prob",
          "partial_rotary_factor",
          "rotary_emb_base"});
  return a;
}

Architecture ReadFalcon(const ConfigJson& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("max_position_embeddings", 2048);
  a.intermediate = c.Count("ffn_hidden_size", 4 * a.hidden);
  const bool groups = c.Flag("new_decoder_architecture", false);
  const bool one = c.Flag("multi_query", true);
  const int64_t keys = c.PositiveCount("num_kv_heads", groups ? a.heads : 1);
  a.key_value_heads = groups ? keys : (one ? 1 : a.heads);
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = c.Flag("alibi", false) ? model::PositionKind::kAlibi
                                           : model::PositionKind::kRotary;
  SetLayerNorm(a, c.Flag("bias", false));
  a.dropout = c.Share("hidden_dropout");
  c.Share("attention_dropout");
  c.Expect("apply_residual_connection_post_layernorm", false);
  const bool parallel = c.Flag("parallel_attn", true);
  a.parallel_block = groups || parallel;
  // The larger ones have a norm for each branch.
  a.shared_norm = a.parallel_block &&
                  (!groups || c.Count("num_ln_in_parallel_attn", 2) == 1);
  ReadActivation(c, "activation", "gelu", a);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  c.Has("layer_norm_epsilon");
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

Architecture ReadGlm4(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(2, 128));
  a.attention_bias = c.Flag("attention_bias", true);
  a.output_bias = false;
  a.norm_placement = model::NormPlacement::kBoth;
  a.rotary_head_size = RotarySize(a, c.Part("partial_rotary_factor", 0.5));
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

Architecture ReadStableLm(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(32));
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.attention_bias = c.Flag("use_qkv_bias", false);
  a.output_bias = false;
  a.parallel_block = a.shared_norm = c.Flag("use_parallel_residual", false);
  a.rotary_head_size = RotarySize(a, c.Part("partial_rotary_factor", 0.25));
  a.dropout = c.Share("hidden_dropout");
  c.Expect("qk_layernorm", false);
  return a;
}

// What decoders after GPT-2 share.
Architecture ReadGpt(const ConfigJson& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("n_layer");
  a.hidden = c.Count("n_embd");
  a.heads = c.Count("n_head");
  a.intermediate = c.Count("n_inner", 4 * a.hidden);
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("n_positions");
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  ReadActivation(c, "activation_function", "gelu_new", a);
  Ignore(c,
         {"attn_pdrop",
          "layer_norm_epsilon",
          "n_ctx",
          "scale_attn_weights",
          "summary_activation",
          "summary_first_dropout",
          "summary_proj_to_labels",
          "summary_type",
          "summary_use_proj"});
  return a;
}

// Radford et al. 2019.
Architecture ReadGpt2(const ConfigJson& c) {
  Architecture a = ReadGpt(c);
  a.dropout = c.Share("resid_pdrop", 0.1);
  c.Expect("add_cross_attention", false);
  c.Expect("scale_attn_by_inverse_layer_idx", false);
  c.Expect("reorder_and_upcast_attn", false);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"task_specific_params"});
  return a;
}

Architecture ReadGptBigCode(const ConfigJson& c) {
  Architecture a = ReadGpt(c);
  a.dropout = c.Share("resid_pdrop", 0.1);
  const int64_t keys = c.Flag("multi_query", true) ? 1 : a.heads;
  c.Expect("num_key_value_heads", keys);
  a.key_value_heads = keys == a.heads ? 0 : keys;
  a.narrow_logits = true;
  c.Expect("add_cross_attention", false);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"});
  return a;
}

// Zhang et al. 2022; two rows of the table are padding.
Architecture ReadOpt(const ConfigJson& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.intermediate = c.Count("ffn_dim");
  a.vocabulary = c.Count("vocab_size");
  a.position_offset = 2;
  a.positions = c.PositiveCount("max_position_embeddings") + a.position_offset;
  a.embedding_layer_norm = a.pooler = false;
  a.separate_projections = true;
  a.head = model::Head::kCausalLanguageModel;
  ReadActivation(c, "activation_function", "relu", a);
  a.dropout = c.Share("dropout", 0.1);
  a.SetWordWidth(c.Count("word_embed_proj_dim", a.hidden));
  if (!c.Flag("do_layer_norm_before", true)) {  // OPT-350m alone
    a.norm_placement = model::NormPlacement::kAfter;
  }
  c.Expect("enable_bias", true);
  c.Expect("layer_norm_elementwise_affine", true);
  if (a.norm_before()) {
    a.final_norm = !c.Flag("_remove_final_layer_norm", false);
  } else {
    c.Has("_remove_final_layer_norm");
  }
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c,
         {"activation_dropout",
          "attention_dropout",
          "init_std",
          "layerdrop",
          "prefix"});
  return a;
}

// SmolLM3: every fourth block without positions, or those that a list of 0 and
// 1 says (Yang et al. 2025, "Rope to Nope and Back Again").
Architecture ReadSmolLm3(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true, UsualHeads(4));
  c.Expect("use_sliding_window", false);
  CountWords(c, "layer_types", "full_attention", a.layers);
  Ignore(c, {"max_window_layers", "sliding_window"});
  a.unrotated_layers = a.layers / c.PositiveCount("no_rope_layer_interval", 4);
  if (!c.Has("no_rope_layers")) return a;
  a.unrotated_layers = 0;
  int64_t block = 0;
  for (const json& rotates : c.List("no_rope_layers", a.layers, "numbers")) {
    if (!rotates.is_number_integer() || (rotates != 0 && rotates != 1)) {
      c.Expected(fmt::format("no_rope_layers[{}]", block), "0 or 1", rotates);
    }
    if (rotates == 0) ++a.unrotated_layers;
    ++block;
  }
  return a;
}

// Groeneveld et al. 2024: the first OLMo, whose norms have no weights.
Architecture ReadOlmo(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm = model::Norm::kLayer;
  a.norm_scale = a.norm_bias = false;
  c.Expect("clip_qkv", nullptr);
  return a;
}

// Attention and feed-forward read one norm, which has no shift.
Architecture ReadCohere(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true);
  a.norm = model::Norm::kLayer;
  a.parallel_block = a.shared_norm = true;
  c.Expect("use_qk_norm", false);
  c.Has("logit_scale");
  return a;
}

// Blocks that see all have no positions.
Architecture ReadCohere2(const ConfigJson& c) {
  Architecture a = ReadCohere(c);
  ReadWindow(c, a.layers - a.layers / WindowPeriod(c, 4), a, 4096);
  a.unrotated_layers = a.layers - a.windowed_layers;
  // What the published files say beside.
  c.Expect("use_gated_activation", true);
  c.Expect("use_parallel_block", true);
  c.Expect("rotary_pct", 1.0);
  Ignore(c,
         {"layer_switch",
          "order_of_interleaved_layers",
          "position_embedding_type",
          "use_embedding_sharing",
          "use_parallel_embedding"});
  return a;
}

Architecture ReadGlm(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(2, 128));
  a.attention_bias = c.Flag("attention_bias", true);
  a.output_bias = false;
  a.rotary_head_size = RotarySize(a, c.Part("partial_rotary_factor", 0.5));
  return a;
}

// Li et al. 2023: attention and feed-forward side by side, logits with biases.
Architecture ReadPhi(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, true);
  ReadActivation(c, "hidden_act", "gelu_new", a);
  a.parallel_block = a.shared_norm = true;
  a.rotary_head_size = RotarySize(a, c.Part("partial_rotary_factor", 0.5));
  a.logits_bias = true;
  a.dropout = c.Share("resid_pdrop");
  c.Expect("qk_layernorm", false);
  return a;
}

// Wang & Komatsuzaki 2021.
Architecture ReadGptJ(const ConfigJson& c) {
  Architecture a = ReadGpt(c);
  a.separate_projections = true;
  a.position_kind = model::PositionKind::kRotary;
  a.rotary_head_size = c.Count("rotary_dim", 64);
  a.attention_bias = a.output_bias = false;
  a.parallel_block = a.shared_norm = true;
  a.logits_bias = true;
  a.dropout = c.Share("resid_pdrop");
  a.untied_output = !c.Flag("tie_word_embeddings", false);
  Ignore(c, {"gradient_checkpointing", "rotary"});
  return a;
}

// Le Scao et al. 2022: ALiBi, and a norm of the embeddings.
Architecture ReadBloom(const ConfigJson& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count(c.Has("n_layer") ? "n_layer" : "num_hidden_layers");
  a.hidden = c.Count(c.Has("n_embed") ? "n_embed" : "hidden_size");
  a.heads = c.Count(c.Has("n_head") ? "n_head" : "num_attention_heads");
  a.intermediate = 4 * a.hidden;
  a.vocabulary = c.Count("vocab_size");
  a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  a.position_kind = model::PositionKind::kAlibi;
  a.activation = model::Activation::kGeluTanh;
  a.dropout = c.Share("hidden_dropout");
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  c.Expect("apply_residual_connection_post_layernorm", false);
  Ignore(c,
         {"attention_dropout",
          "attention_softmax_in_fp32",
          "bias_dropout_fusion",
          "hidden_size",
          "layer_norm_epsilon",
          "masked_softmax_fusion",
          "n_inner",
          "num_attention_heads",
          "num_hidden_layers",
          "offset_alibi",
          "seq_length",
          "skip_bias_add",
          "skip_bias_add_qkv",
          "slow_but_exact"});
  return a;
}

constexpr std::array kDecoders = {
    ModelType{"bloom", &ReadBloom},
    ModelType{"cohere", &ReadCohere},
    ModelType{"cohere2", &ReadCohere2},
    ModelType{"deepseek_v2", &ReadDeepSeek},
    ModelType{"deepseek_v3", &ReadDeepSeek},
    ModelType{"ernie4_5", &ReadErnie},
    ModelType{"exaone4", &ReadExaone4},
    ModelType{"falcon", &ReadFalcon},
    ModelType{"gemma", &ReadGemma},
    ModelType{"gemma2", &ReadGemma2},
    ModelType{"gemma3_text", &ReadGemma3},
    ModelType{"glm", &ReadGlm},
    ModelType{"glm4", &ReadGlm4},
    ModelType{"glm4_moe", &ReadGlm4Moe},
    ModelType{"gpt2", &ReadGpt2},
    ModelType{"gpt_bigcode", &ReadGptBigCode},
    ModelType{"gpt_neox", &ReadGptNeoX},
    ModelType{"gpt_oss", &ReadGptOss},
    ModelType{"gptj", &ReadGptJ},
    ModelType{"granite", &ReadGranite},
    ModelType{"granitemoe", &ReadGraniteMoe},
    ModelType{"llama", [](const ConfigJson& c) { return ReadLlama(c); }},
    ModelType{"mistral", &ReadMistral},
    ModelType{"mixtral", &ReadMixtral},
    ModelType{"olmo", &ReadOlmo},
    ModelType{"olmo2", &ReadOlmo2},
    ModelType{"olmo3", &ReadOlmo3},
    ModelType{"olmoe", &ReadOlmoe},
    ModelType{"opt", &ReadOpt},
    ModelType{"phi", &ReadPhi},
    ModelType{"phi3", &ReadPhi3},
    ModelType{"qwen2", [](const ConfigJson& c) { return ReadQwen(c, false); }},
    ModelType{"qwen2_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, false); }},
    ModelType{"qwen3", [](const ConfigJson& c) { return ReadQwen(c, true); }},
    ModelType{"qwen3_moe",
              [](const ConfigJson& c) { return ReadQwenMoe(c, true); }},
    ModelType{"seed_oss", &ReadSeedOss},
    ModelType{"smollm3", &ReadSmolLm3},
    ModelType{"stablelm", &ReadStableLm},
    ModelType{"starcoder2", &ReadStarcoder2},
};

}  // namespace

std::span<const ModelType> DecoderTypes() { return kDecoders; }

}  // namespace trainfare::hardware
