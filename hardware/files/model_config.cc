#include "hardware/files/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "hardware/files/config_json.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// Keys that change no count of a step.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "aux_loss_alpha",
    "bos_token_id",
    "cache_implementation",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "ep_size",
    "initializer_range",
    "layer_norm_eps",
    "model_type",
    "norm_topk_prob",
    // Transformers builds no such blocks; a scenario's next_token_blocks does.
    "num_nextn_predict_layers",
    "original_max_position_embeddings",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "query_pre_attn_scalar",
    "resid_pdrop",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scoring_func",
    "seq_aux",
    "topk_group",
    "n_group",
    "topk_method",
    "torch_dtype",
    "transformers_version",
    "unk_token_id",
    "use_cache",
});

using Config = ConfigJson;

// How many of a list of words are this one; nullopt without the list.
std::optional<int64_t> CountWords(const Config& c,
                                  const char* key,
                                  std::string_view word) {
  if (!c.Has(key)) return std::nullopt;
  int64_t count = 0;
  for (const json& one : c.At(key)) {
    if (!one.is_string()) c.Fail(fmt::format("{}: expected words", key));
    const auto text = one.get<std::string>();
    if (text == word) {
      ++count;
    } else if (text != "full_attention") {
      c.Fail(
          fmt::format("{}: expected full_attention or {}, got {}; such "
                      "blocks are not counted",
                      key,
                      word,
                      text));
    }
  }
  return count;
}

// Names a key that nobody asked for and that may change the computation.
void RefuseUnknown(const Config& c, std::string_view type) {
  for (const std::string& key : c.Unasked()) {
    if (std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end()) {
      continue;
    }
    c.Fail(
        fmt::format("{}: not understood for model_type {}; it may change "
                    "what a step computes",
                    key,
                    type));
  }
}

void ReadActivation(const Config& c,
                    const char* key,
                    const char* fallback,
                    Architecture& a) {
  const std::string name = c.Text(key, fallback);
  if (name == "silu" || name == "swish") {
    a.activation = model::Activation::kSilu;
  } else if (name == "gelu") {
    a.activation = model::Activation::kGelu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new") {
    a.activation = model::Activation::kGeluTanh;
  } else if (name == "relu") {
    a.activation = model::Activation::kRelu;
  } else {
    c.Fail(
        fmt::format("{}: expected silu, gelu, gelu_pytorch_tanh or relu, "
                    "got {}",
                    key,
                    name));
  }
}

// What the decoders of Llama's kind share.
Architecture ReadLlama(const Config& c, bool tied = false) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.key_value_heads = c.Count("num_key_value_heads", a.heads);
  a.intermediate = c.Count("intermediate_size");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.Count("max_position_embeddings");
  a.head_size = c.Count("head_dim", 0);
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

// `layers`: those with a window where the file does not list them.
void ReadWindow(const Config& c, int64_t layers, Architecture& a) {
  const auto listed = CountWords(c, "layer_types", "sliding_attention");
  const int64_t window = c.Count("sliding_window", 0);
  a.windowed_layers = window > 0 ? listed.value_or(layers) : 0;
  a.window = a.windowed_layers > 0 ? window : 0;
}

Architecture ReadMistral(const Config& c) {
  Architecture a = ReadLlama(c);
  ReadWindow(c, a.layers, a);
  return a;
}

Architecture ReadMixtral(const Config& c) {
  Architecture a = ReadMistral(c);
  a.experts = c.Count("num_local_experts", 8);
  a.experts_per_token = c.Count("num_experts_per_tok", 2);
  a.expert_intermediate = a.intermediate;
  return a;
}

// A window counts only where use_sliding_window says so, above the first
// max_window_layers blocks.
Architecture ReadQwen(const Config& c, bool version_3) {
  Architecture a = ReadLlama(c);
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

Architecture ReadQwenMoe(const Config& c, bool version_3) {
  Architecture a = ReadQwen(c, version_3);
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

Architecture ReadGemma(const Config& c) {
  Architecture a = ReadLlama(c, /*tied=*/true);
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

Architecture ReadGemma2(const Config& c) {
  Architecture a = ReadGemma(c);
  ReadWindow(c, (a.layers + 1) / 2, a);
  a.norm_placement = model::NormPlacement::kBoth;
  a.attention_soft_cap = c.Has("attn_logit_softcapping");
  a.output_soft_cap = c.Has("final_logit_softcapping");
  return a;
}

Architecture ReadGemma3(const Config& c) {
  Architecture a = ReadGemma(c);
  const int64_t period = c.Count("sliding_window_pattern", 6);
  ReadWindow(c, a.layers - a.layers / std::max<int64_t>(1, period), a);
  a.norm_placement = model::NormPlacement::kBoth;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  c.Expect("attn_logit_softcapping", nullptr);
  c.Expect("final_logit_softcapping", nullptr);
  return a;
}

Architecture ReadOlmo2(const Config& c) {
  Architecture a = ReadLlama(c);
  a.norm_placement = model::NormPlacement::kOutputs;
  a.query_key_norm = model::QueryKeyNorm::kWhole;
  return a;
}

Architecture ReadDeepSeek(const Config& c) {
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
  // Weights come in fp8 blocks; a step's precision is the scenario's.
  c.Has("quantization_config");
  return a;
}

// Keys that scale what a block adds, in passes that are there anyway.
Architecture ReadGranite(const Config& c) {
  for (const char* key : {"attention_multiplier",
                          "embedding_multiplier",
                          "logits_scaling",
                          "residual_multiplier"}) {
    c.Has(key);
  }
  return ReadLlama(c, /*tied=*/true);
}

// Wang & Komatsuzaki's and OpenAI's blocks under today's positions: LayerNorm
// with biases and no gate.
void SetLayerNorm(Architecture& a, bool bias) {
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = bias;
}

Architecture ReadStarcoder2(const Config& c) {
  Architecture a = ReadLlama(c, /*tied=*/true);
  SetLayerNorm(a, c.Flag("use_bias", true));
  ReadActivation(c, "hidden_act", "gelu_pytorch_tanh", a);
  ReadWindow(c, a.layers, a);
  c.Share("residual_dropout");
  c.Share("embedding_dropout");
  c.Has("norm_epsilon");
  return a;
}

// The part of each head that carries its position.
int64_t RotarySize(const Architecture& a, double share) {
  return static_cast<int64_t>(static_cast<double>(a.query_head_size()) * share);
}

Architecture ReadGptNeoX(const Config& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, c.Flag("attention_bias", true));
  a.feed_forward_bias = true;
  a.separate_projections = false;
  a.parallel_block = c.Flag("use_parallel_residual", true);
  ReadActivation(c, "hidden_act", "gelu", a);
  a.rotary_head_size = RotarySize(a, c.Number("rotary_pct", 0.25));
  a.dropout = c.Share("hidden_dropout");
  for (const char* key : {"classifier_dropout", "rotary_emb_base"}) c.Has(key);
  return a;
}

Architecture ReadFalcon(const Config& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.Count("max_position_embeddings", 2048);
  a.intermediate = c.Count("ffn_hidden_size", 4 * a.hidden);
  const bool groups = c.Flag("new_decoder_architecture", false);
  const bool one = c.Flag("multi_query", true);
  const int64_t keys = c.Count("num_kv_heads", groups ? a.heads : 1);
  a.key_value_heads = groups ? keys : (one ? 1 : a.heads);
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = c.Flag("alibi", false) ? model::PositionKind::kAlibi
                                           : model::PositionKind::kRotary;
  SetLayerNorm(a, c.Flag("bias", false));
  a.dropout = c.Share("hidden_dropout");
  c.Share("attention_dropout");
  a.parallel_block = groups || c.Flag("parallel_attn", true);
  // The larger ones have a norm for each branch.
  a.shared_norm = a.parallel_block &&
                  (!groups || c.Count("num_ln_in_parallel_attn", 2) == 1);
  ReadActivation(c, "activation", "gelu", a);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  c.Has("layer_norm_epsilon");
  return a;
}

Architecture ReadGptOss(const Config& c) {
  Architecture a = ReadLlama(c);
  if (a.head_size == 0) a.head_size = 64;
  a.attention_bias = a.output_bias = c.Flag("attention_bias", true);
  ReadWindow(c, (a.layers + 1) / 2, a);
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

Architecture ReadGlm4(const Config& c) {
  Architecture a = ReadLlama(c);
  a.output_bias = false;
  a.norm_placement = model::NormPlacement::kBoth;
  a.rotary_head_size = RotarySize(a, c.Number("partial_rotary_factor", 0.5));
  return a;
}

// Radford et al. 2019.
Architecture ReadGpt2(const Config& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("n_layer");
  a.hidden = c.Count("n_embd");
  a.heads = c.Count("n_head");
  a.intermediate = c.Count("n_inner", 4 * a.hidden);
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.Count("n_positions");
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  ReadActivation(c, "activation_function", "gelu_new", a);
  a.dropout = c.Share("resid_pdrop");
  c.Expect("add_cross_attention", false);
  c.Expect("scale_attn_by_inverse_layer_idx", false);
  c.Expect("reorder_and_upcast_attn", false);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  for (const char* key : {"attn_pdrop",
                          "layer_norm_epsilon",
                          "n_ctx",
                          "scale_attn_weights",
                          "summary_activation",
                          "summary_first_dropout",
                          "summary_proj_to_labels",
                          "summary_type",
                          "summary_use_proj",
                          "task_specific_params"}) {
    c.Has(key);
  }
  return a;
}

// Zhang et al. 2022; two rows of the table are padding.
Architecture ReadOpt(const Config& c) {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.intermediate = c.Count("ffn_dim");
  a.vocabulary = c.Count("vocab_size");
  a.position_offset = 2;
  a.positions = c.Count("max_position_embeddings") + a.position_offset;
  a.embedding_layer_norm = a.pooler = false;
  a.separate_projections = true;
  a.head = model::Head::kCausalLanguageModel;
  ReadActivation(c, "activation_function", "relu", a);
  a.dropout = c.Share("dropout");
  c.Expect("word_embed_proj_dim", a.hidden);
  c.Expect("do_layer_norm_before", true);
  c.Expect("enable_bias", true);
  c.Expect("layer_norm_elementwise_affine", true);
  c.Expect("_remove_final_layer_norm", false);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  for (const char* key : {"activation_dropout",
                          "attention_dropout",
                          "init_std",
                          "layerdrop",
                          "prefix"}) {
    c.Has(key);
  }
  return a;
}

// Devlin et al. 2019.
Architecture ReadBert(const Config& c) {
  Architecture a;
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.intermediate = c.Count("intermediate_size");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.Count("max_position_embeddings");
  a.token_types = c.Count("type_vocab_size");
  ReadActivation(c, "hidden_act", "gelu", a);
  a.dropout = c.Share("hidden_dropout_prob");
  c.Expect("position_embedding_type", "absolute");
  c.Expect("add_cross_attention", false);
  c.Expect("is_decoder", false);
  for (const char* key : {"attention_probs_dropout_prob",
                          "classifier_dropout",
                          "gradient_checkpointing"}) {
    c.Has(key);
  }
  return a;
}

Architecture ReadRoberta(const Config& c) {
  Architecture a = ReadBert(c);
  a.position_offset = c.Count("pad_token_id", 1) + 1;
  a.pooler = false;
  a.classifier_dense = true;
  return a;
}

// Clark et al. 2020: the discriminator.
Architecture ReadElectra(const Config& c) {
  Architecture a = ReadBert(c);
  c.Expect("embedding_size", a.hidden);
  a.pooler = false;
  a.classifier_dense = true;
  for (const char* key : {"summary_activation",
                          "summary_last_dropout",
                          "summary_type",
                          "summary_use_proj"}) {
    c.Has(key);
  }
  return a;
}

Architecture ReadDistilBert(const Config& c) {
  Architecture a;
  a.layers = c.Count("n_layers");
  a.hidden = c.Count("dim");
  a.heads = c.Count("n_heads");
  a.intermediate = c.Count("hidden_dim");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.Count("max_position_embeddings");
  a.pooler = false;
  a.classifier_dense = true;
  ReadActivation(c, "activation", "gelu", a);
  a.dropout = c.Share("dropout");
  for (const char* key : {"attention_dropout",
                          "qa_dropout",
                          "seq_classif_dropout",
                          "sinusoidal_pos_embds",
                          "tie_weights_"}) {
    c.Has(key);
  }
  return a;
}

// Types whose blocks the description in model/architecture.h has no words for.
struct RefusedType {
  std::string_view type;
  std::string_view what;
};
constexpr std::array kRefusedTypes = {
    RefusedType{"bart",
                "norms behind the residual in a decoder with tables of "
                "positions on both sides"},
    RefusedType{"modernbert", "a first block without a norm before attention"},
    RefusedType{"smollm3", "blocks without positions between those with"},
    RefusedType{"t5",
                "RMSNorm and relative positions on two sides, a decoder "
                "whose feed-forward has no biases"},
};

struct TypeRow {
  std::string_view type;
  Architecture (*read)(const Config&);
};
constexpr std::array kTypes = {
    TypeRow{"bert", &ReadBert},
    TypeRow{"deepseek_v2", &ReadDeepSeek},
    TypeRow{"deepseek_v3", &ReadDeepSeek},
    TypeRow{"distilbert", &ReadDistilBert},
    TypeRow{"electra", &ReadElectra},
    TypeRow{"falcon", &ReadFalcon},
    TypeRow{"gemma", &ReadGemma},
    TypeRow{"gemma2", &ReadGemma2},
    TypeRow{"gemma3_text", &ReadGemma3},
    TypeRow{"glm4", &ReadGlm4},
    TypeRow{"gpt2", &ReadGpt2},
    TypeRow{"gpt_neox", &ReadGptNeoX},
    TypeRow{"gpt_oss", &ReadGptOss},
    TypeRow{"granite", &ReadGranite},
    TypeRow{"llama", [](const Config& c) { return ReadLlama(c); }},
    TypeRow{"mistral", &ReadMistral},
    TypeRow{"mixtral", &ReadMixtral},
    TypeRow{"olmo2", &ReadOlmo2},
    TypeRow{"opt", &ReadOpt},
    TypeRow{"phi3", &ReadMistral},
    TypeRow{"qwen2", [](const Config& c) { return ReadQwen(c, false); }},
    TypeRow{"qwen2_moe", [](const Config& c) { return ReadQwenMoe(c, false); }},
    TypeRow{"qwen3", [](const Config& c) { return ReadQwen(c, true); }},
    TypeRow{"qwen3_moe", [](const Config& c) { return ReadQwenMoe(c, true); }},
    TypeRow{"roberta", &ReadRoberta},
    TypeRow{"starcoder2", &ReadStarcoder2},
};

}  // namespace

model::Architecture ReadModelConfig(const std::string& path) {
  const Config config(path, "nothing else is counted");
  if (config.Has("vision_config")) {
    config.Fail(
        "vision_config: expected a language model, got one with images; hint: "
        "its text_config as a file of its own");
  }
  const std::string type = config.Text("model_type", "");
  if (type.empty()) config.Fail("model_type: missing");
  const auto* const row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& known) {
        return known.type == type;
      });
  for (const RefusedType& refused : kRefusedTypes) {
    if (refused.type != type) continue;
    config.Fail(
        fmt::format("model_type: {} is not counted: {}; hint: spell "
                    "out the nearest model as a map",
                    type,
                    refused.what));
  }
  if (row == kTypes.end()) {
    std::vector<std::string_view> known;
    for (const TypeRow& one : kTypes) known.push_back(one.type);
    config.Fail(fmt::format("model_type: unknown type \"{}\"{}; known: {}",
                            type,
                            model::DidYouMean(type, known),
                            model::JoinNames(known, known.size())));
  }
  Architecture a = row->read(config);
  RefuseUnknown(config, type);
  a.name = config.Text("_name_or_path", type);
  if (a.name.empty()) a.name = type;
  // The blocks without a head of their own have the usual one.
  if (a.key_value_heads == a.heads) a.key_value_heads = 0;
  return a;
}

}  // namespace trainfare::hardware
