// Decoders with LayerNorm: GPT-2 and those after it, and others.

#include <fmt/format.h>

#include <algorithm>
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
using nlohmann::json;

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
  const CountedDropout counted = {"attention_dropout", a.dropout};
  ExpectDropout(c, "residual_dropout", 0.0, counted);
  ExpectDropout(c, "embedding_dropout", 0.0, counted);
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

Architecture ReadGptNeoX(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, c.Flag("attention_bias", true));
  a.feed_forward_bias = true;
  a.separate_projections = false;
  a.parallel_block = c.Flag("use_parallel_residual", true);
  ReadActivation(c, "hidden_act", "gelu", a);
  a.rotary_head_size = RotarySize(c, a, "rotary_pct", 0.25);
  a.dropout = c.Share("hidden_dropout");
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
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
  Architecture a = NextTokenDecoder();
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
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = c.Flag("alibi", false) ? model::PositionKind::kAlibi
                                           : model::PositionKind::kRotary;
  SetLayerNorm(a, c.Flag("bias", false));
  a.dropout = c.Share("hidden_dropout");
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
  c.Expect("apply_residual_connection_post_layernorm", false);
  const bool parallel = c.Flag("parallel_attn", true);
  a.parallel_block = groups || parallel;
  // The larger ones have a norm for each branch.
  a.shared_norm = a.parallel_block &&
                  (!groups || c.Count("num_ln_in_parallel_attn", 2) == 1);
  ReadActivation(c, "activation", "gelu", a);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"ff_factor"});  // what ffn_hidden_size says, of published files
  return a;
}

Architecture ReadStableLm(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(32));
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.attention_bias = c.Flag("use_qkv_bias", false);
  a.output_bias = false;
  a.parallel_block = a.shared_norm = c.Flag("use_parallel_residual", false);
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.25);
  a.dropout = c.Share("hidden_dropout");
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
  c.Expect("qk_layernorm", false);
  return a;
}

// What decoders after GPT-2 share. `activation` and `dropout`: of the type's
// class.
Architecture ReadGpt(const ConfigJson& c,
                     const char* activation,
                     double dropout) {
  Architecture a = NextTokenDecoder();
  a.layers = c.Count("n_layer");
  a.hidden = c.Count("n_embd");
  a.heads = c.Count("n_head");
  a.intermediate = c.Count("n_inner", 4 * a.hidden);
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("n_positions");
  ReadActivation(c, "activation_function", activation, a);
  a.dropout = c.Share("resid_pdrop", dropout);
  const CountedDropout counted = {"resid_pdrop", a.dropout};
  ExpectDropout(c, "attn_pdrop", dropout, counted);
  ExpectDropout(c, "embd_pdrop", dropout, counted);
  Ignore(c,
         {"n_ctx",
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
  Architecture a = ReadGpt(c, "gelu_new", 0.1);
  c.Expect("add_cross_attention", false);
  c.Expect("scale_attn_by_inverse_layer_idx", false);
  c.Expect("reorder_and_upcast_attn", false);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"task_specific_params"});
  return a;
}

// Radford et al. 2018: the first GPT, whose norms stand behind. Its GELU is by
// tanh, operation by operation.
Architecture ReadFirstGpt(const ConfigJson& c) {
  Architecture a = ReadGpt(c, "gelu_new", 0.1);
  a.intermediate = 4 * a.hidden;
  a.norm_placement = model::NormPlacement::kAfter;
  const std::string name = c.Text("afn", "gelu");
  SetActivation(c, "afn", name == "gelu" ? "gelu_new" : name, a);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"predict_special_tokens"});
  return a;
}

Architecture ReadGptBigCode(const ConfigJson& c) {
  Architecture a = ReadGpt(c, "gelu_pytorch_tanh", 0.1);
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
  Architecture a = NextTokenDecoder();
  a.layers = c.Count("num_hidden_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_attention_heads");
  a.intermediate = c.Count("ffn_dim");
  a.vocabulary = c.Count("vocab_size");
  a.position_offset = 2;
  a.positions = c.PositiveCount("max_position_embeddings") + a.position_offset;
  a.separate_projections = true;
  ReadActivation(c, "activation_function", "relu", a);
  a.dropout = c.Share("dropout", 0.1);
  ExpectDropoutOrNone(c, "attention_dropout", 0.0, {"dropout", a.dropout});
  // Blocks that a step leaves out by chance are not counted.
  c.Expect("layerdrop", 0);
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
  Ignore(c, {"activation_dropout", "init_std", "prefix"});
  return a;
}

// Groeneveld et al. 2024: the first OLMo, whose norms have no weights.
Architecture ReadOlmo(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm = model::Norm::kLayer;
  a.norm_scale = a.norm_bias = false;
  a.clipped_projections = ClipsProjections(c);
  return a;
}

// Attention and feed-forward read one norm, which has no shift.
Architecture ReadCohere(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/true);
  a.norm = model::Norm::kLayer;
  a.parallel_block = a.shared_norm = true;
  if (c.Flag("use_qk_norm", false)) {
    a.query_key_norm = model::QueryKeyNorm::kEachHead;
  }
  c.Has("logit_scale");
  return a;
}

// Blocks that see all have no positions. Its class has no norms of queries and
// keys.
Architecture ReadCohere2(const ConfigJson& c) {
  Architecture a = ReadCohere(c);
  c.Expect("use_qk_norm", false);
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

// Li et al. 2023: attention and feed-forward side by side, logits with biases.
Architecture ReadPhi(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, true);
  ReadActivation(c, "hidden_act", "gelu_new", a);
  a.parallel_block = a.shared_norm = true;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  a.logits_bias = true;
  a.dropout = c.Share("resid_pdrop");
  const CountedDropout counted = {"resid_pdrop", a.dropout};
  ExpectDropoutOrNone(c, "attention_dropout", 0.0, counted);
  ExpectDropoutOrNone(c, "embd_pdrop", 0.0, counted);
  c.Expect("qk_layernorm", false);
  return a;
}

// Parmar et al. 2024, "Nemotron-4 15B", and Minitron: a square of ReLU, no gate.
Architecture ReadNemotron(const ConfigJson& c) {
  c.At("num_key_value_heads");  // its class is not built without
  Architecture a = ReadLlama(c);
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  ReadActivation(c, "hidden_act", "relu2", a);
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  return a;
}

// Inception and MBZUAI 2025, Jais 2: biases everywhere, a square of ReLU.
Architecture ReadJais2(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.norm = model::Norm::kLayer;
  a.norm_bias = true;
  a.gated = false;
  a.attention_bias = a.output_bias = c.Flag("attention_bias", true);
  a.feed_forward_bias = c.Flag("mlp_bias", true);
  ReadActivation(c, "hidden_act", "relu2", a);
  return a;
}

// Elsen et al. 2023.
Architecture ReadPersimmon(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  SetLayerNorm(a, true);
  a.separate_projections = false;
  a.key_value_heads = 0;
  a.head_size = 0;
  ReadActivation(c, "hidden_act", "relu2", a);
  if (c.Flag("qk_layernorm", true)) {
    a.query_key_norm = model::QueryKeyNorm::kHead;
  }
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.5);
  a.dropout = c.Share("hidden_dropout");
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
  return a;
}

// Wang & Komatsuzaki 2021.
Architecture ReadGptJ(const ConfigJson& c) {
  Architecture a = ReadGpt(c, "gelu_new", 0.0);
  a.separate_projections = true;
  a.position_kind = model::PositionKind::kRotary;
  // Null is all of a head.
  a.rotary_head_size = c.IsNull("rotary_dim") ? 0 : c.Count("rotary_dim", 64);
  a.attention_bias = a.output_bias = false;
  a.parallel_block = a.shared_norm = true;
  a.logits_bias = true;
  a.untied_output = !c.Flag("tie_word_embeddings", false);
  Ignore(c, {"gradient_checkpointing", "rotary"});
  return a;
}

// Nijkamp et al. 2023: the same with one projection.
Architecture ReadCodeGen(const ConfigJson& c) {
  Architecture a = ReadGptJ(c);
  a.separate_projections = false;
  return a;
}

// How many blocks of GPT-Neo have a window: "attention_types" are lists of kinds
// of blocks, each with how often it stands.
int64_t LocalBlocks(const ConfigJson& c, int64_t layers) {
  constexpr const char* kKey = "attention_types";
  const json& types = c.At(kKey);
  const auto refuse = [&] {
    c.Expected(kKey,
               fmt::format("lists of global and local, each with how often, of "
                           "{} blocks",
                           layers),
               types);
  };
  if (!types.is_array()) refuse();
  int64_t blocks = 0;
  int64_t local = 0;
  for (const json& type : types) {
    if (!type.is_array() || type.size() != 2 || !type[0].is_array() ||
        !type[1].is_number_integer() || type[1] < 0 || type[1] > layers) {
      refuse();
    }
    const int64_t times = type[1].get<int64_t>();
    for (const json& kind : type[0]) {
      if (kind != "global" && kind != "local") refuse();
      blocks += times;
      if (kind == "local") local += times;
    }
  }
  if (blocks != layers) refuse();
  return local;
}

// Black et al. 2021: scores as they are, and a window in every other block.
Architecture ReadGptNeo(const ConfigJson& c) {
  Architecture a = NextTokenDecoder();
  a.layers = c.Count("num_layers");
  a.hidden = c.Count("hidden_size");
  a.heads = c.Count("num_heads");
  a.intermediate = c.Count("intermediate_size", 4 * a.hidden);
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("max_position_embeddings");
  a.separate_projections = true;
  a.attention_bias = a.scaled_scores = false;
  a.windowed_layers = LocalBlocks(c, a.layers);
  const int64_t window = c.PositiveCount("window_size", 256);
  a.window = a.windowed_layers > 0 ? std::min(window, a.positions) : 0;
  ReadActivation(c, "activation_function", "gelu_new", a);
  a.dropout = c.Share("resid_dropout");
  const CountedDropout counted = {"resid_dropout", a.dropout};
  ExpectDropout(c, "attention_dropout", 0.0, counted);
  ExpectDropout(c, "embed_dropout", 0.0, counted);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  // The same as attention_types, block by block; and heads of other tasks.
  Ignore(c,
         {"attention_layers",
          "classifier_dropout",
          "gradient_checkpointing",
          "summary_activation",
          "summary_first_dropout",
          "summary_proj_to_labels",
          "summary_type",
          "summary_use_proj"});
  return a;
}

// What MPT's files say of attention in a map of its own: clipping, and the share
// of dropout, which is also that of hidden states.
void ReadMptAttention(const ConfigJson& c, Architecture& a) {
  a.dropout = c.Share("attn_pdrop");
  a.clipped_projections = ClipsProjections(c);
  c.Expect("alibi", true);
  c.Expect("attn_type", "multihead_attention");
  c.Expect("attn_uses_sequence_id", false);
  c.Expect("is_encoder_decoder", false);
  c.Expect("prefix_lm", false);
  c.Expect("qk_ln", false);
  Ignore(c, {"alibi_bias_max", "attn_impl", "softmax_scale"});
  RefuseUnknown(c, "mpt");
}

// MosaicML 2023: no biases, ALiBi.
Architecture ReadMpt(const ConfigJson& c) {
  Architecture a = NextTokenDecoder();
  a.layers = c.Count("n_layers");
  a.hidden = c.Count("d_model");
  a.heads = c.Count("n_heads");
  a.intermediate = 4 * a.hidden;
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("max_seq_len", 2048);
  a.position_kind = model::PositionKind::kAlibi;
  a.norm_bias = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.dropout = 0.0;
  if (c.Has("attn_config")) ReadMptAttention(c.Within("attn_config"), a);
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  // Its class has these alone, whatever the file says.
  c.Expect("embedding_fraction", 1.0);
  c.Expect("expansion_ratio", 4);
  c.Expect("logit_scale", nullptr);
  c.Expect("no_bias", true);
  Ignore(c,
         {"emb_pdrop",
          "init_config",
          "init_device",
          "learned_pos_emb",
          "norm_type",
          "tokenizer_name",
          "verbose"});
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
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  c.Expect("apply_residual_connection_post_layernorm", false);
  Ignore(c,
         {"attention_softmax_in_fp32",
          "bias_dropout_fusion",
          "hidden_size",
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

constexpr std::array kLayerNormDecoders = {
    ModelType{"bloom", &ReadBloom},
    ModelType{"codegen", &ReadCodeGen},
    ModelType{"cohere", &ReadCohere},
    ModelType{"cohere2", &ReadCohere2},
    ModelType{"falcon", &ReadFalcon},
    ModelType{"gpt2", &ReadGpt2},
    ModelType{"gpt_bigcode", &ReadGptBigCode},
    ModelType{"gpt_neo", &ReadGptNeo},
    ModelType{"gpt_neox", &ReadGptNeoX},
    ModelType{"gptj", &ReadGptJ},
    ModelType{"jais2", &ReadJais2},
    ModelType{"mpt", &ReadMpt},
    ModelType{"nemotron", &ReadNemotron},
    ModelType{"olmo", &ReadOlmo},
    ModelType{"openai-gpt", &ReadFirstGpt},
    ModelType{"opt", &ReadOpt},
    ModelType{"persimmon", &ReadPersimmon},
    ModelType{"phi", &ReadPhi},
    ModelType{"stablelm", &ReadStableLm},
    ModelType{"starcoder2", &ReadStarcoder2},
};

}  // namespace

std::span<const ModelType> LayerNormDecoderTypes() {
  return kLayerNormDecoders;
}

}  // namespace trainfare::hardware
