#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;

// Devlin et al. 2019.
Architecture ReadBert(const ConfigJson& c) {
  Architecture a;
  ReadSizes(c, a);
  a.token_types = c.Count("type_vocab_size", 2);
  ReadActivation(c, "hidden_act", "gelu", a);
  a.dropout = c.Share("hidden_dropout_prob", 0.1);
  ExpectDropout(c,
                "attention_probs_dropout_prob",
                0.1,
                {"hidden_dropout_prob", a.dropout});
  c.Expect("chunk_size_feed_forward", 0);
  c.Expect("position_embedding_type", "absolute");
  c.Expect("add_cross_attention", false);
  c.Expect("is_decoder", false);
  Ignore(c, {"classifier_dropout", "gradient_checkpointing"});
  return a;
}

Architecture ReadRoberta(const ConfigJson& c) {
  Architecture a = ReadBert(c);
  a.position_offset = c.Count("pad_token_id", 1) + 1;
  a.pooler = false;
  a.classifier_dense = true;
  return a;
}

// Shoeybi et al. 2020, and GatorTron: norms before, and none of the embeddings.
Architecture ReadMegatronBert(const ConfigJson& c) {
  Architecture a = ReadBert(c);
  a.embedding_layer_norm = false;
  a.norm_placement = model::NormPlacement::kBefore;
  return a;
}

// Clark et al. 2020: the discriminator.
Architecture ReadElectra(const ConfigJson& c) {
  Architecture a = ReadBert(c);
  a.SetWordWidth(c.Count("embedding_size", 128));
  a.pooler = false;
  a.classifier_dense = true;
  Ignore(c,
         {"summary_activation",
          "summary_last_dropout",
          "summary_type",
          "summary_use_proj"});
  return a;
}

// Lan et al. 2020: one block for all, whose second product has no dropout, so
// that files with some are refused.
Architecture ReadAlbert(const ConfigJson& c) {
  Architecture a;
  ReadSizes(c, a);
  a.shared_blocks = true;
  a.SetWordWidth(c.Count("embedding_size", 128));
  a.token_types = c.Count("type_vocab_size", 2);
  ReadActivation(c, "hidden_act", "gelu_new", a);
  a.dropout = 0.0;
  c.Expect("hidden_dropout_prob", 0);
  c.Expect("attention_probs_dropout_prob", 0);
  c.Expect("inner_group_num", 1);
  c.Expect("num_hidden_groups", 1);
  c.Expect("position_embedding_type", "absolute");
  Ignore(c,
         {"classifier_dropout_prob",
          "down_scale_factor",
          "gap_size",
          "layers_to_keep",
          "net_structure_type",
          "num_memory_blocks"});
  return a;
}

Architecture ReadDistilBert(const ConfigJson& c) {
  Architecture a;
  a.layers = c.Count("n_layers");
  a.hidden = c.Count("dim");
  a.heads = c.Count("n_heads");
  a.intermediate = c.Count("hidden_dim");
  a.vocabulary = c.Count("vocab_size");
  a.positions = c.PositiveCount("max_position_embeddings");
  a.pooler = false;
  a.classifier_dense = true;
  ReadActivation(c, "activation", "gelu", a);
  a.dropout = c.Share("dropout", 0.1);
  ExpectDropout(c, "attention_dropout", 0.1, {"dropout", a.dropout});
  c.Expect("chunk_size_feed_forward", 0);
  Ignore(c,
         {"qa_dropout",
          "seq_classif_dropout",
          "sinusoidal_pos_embds",
          "tie_weights_"});
  return a;
}

// Warner et al. 2024. The values of `position_embedding_type` and of a pooling
// are those of no count.
Architecture ReadModernBert(const ConfigJson& c) {
  Architecture a;
  ReadSizes(c, a);
  a.pooler = false;
  a.classifier_dense = a.head_norm = true;
  a.head_bias = c.Flag("classifier_bias", false);
  c.Expect("decoder_bias", true);
  a.norm_bias = c.Flag("norm_bias", false);
  a.norm_placement = model::NormPlacement::kBefore;
  a.first_norm = false;
  a.position_kind = model::PositionKind::kRotary;
  a.joint_projections = a.joint_gate = a.gated = true;
  a.attention_bias = a.output_bias = c.Flag("attention_bias", false);
  a.feed_forward_bias = c.Flag("mlp_bias", false);
  ReadActivation(c, "hidden_activation", "gelu", a);
  // Every n-th block from the first on sees everything, or as the file lists
  // them.
  const int64_t period = c.PositiveCount("global_attn_every_n_layers", 3);
  a.windowed_layers =
      CountWords(c, "layer_types", "sliding_attention", a.layers)
          .value_or(a.layers - (a.layers + period - 1) / period);
  const int64_t window = c.Count("local_attention", 128);
  a.window = a.windowed_layers > 0 ? std::min(window, a.positions) : 0;
  a.dropout = c.Share("attention_dropout");
  c.Expect("embedding_dropout", 0.0);
  c.Expect("mlp_dropout", 0.0);
  c.Expect("sparse_prediction", false);
  Ignore(c,
         {"classifier_activation",
          "classifier_dropout",
          "classifier_pooling",
          "deterministic_flash_attn",
          "global_rope_theta",
          "gradient_checkpointing",
          "initializer_cutoff_factor",
          "local_attention",
          "local_rope_theta",
          "position_embedding_type",
          "reference_compile",
          "repad_logits_with_grad",
          "sparse_pred_ignore_index"});
  return a;
}

// What files of Nomic's own code say beside, of which Transformers' class has
// one form each; other forms are refused.
void ExpectFormsOfNomic(const ConfigJson& c) {
  c.Expect("activation_function", "swiglu");
  c.Expect("num_experts", 0);
  c.Expect("rotary_emb_fraction", 1.0);
  for (const char* key : {"causal",
                          "mlp_fc1_bias",
                          "mlp_fc2_bias",
                          "parallel_block",
                          "prenorm",
                          "qkv_proj_bias",
                          "use_rms_norm"}) {
    c.Expect(key, false);
  }
  Ignore(c,
         {"add_pooling_layer",
          "dense_seq_output",
          "fused_bias_fc",
          "fused_dropout_add_ln",
          "max_trained_positions",
          "n_embd",
          "n_head",
          "n_inner",
          "n_layer",
          "n_positions",
          "pad_vocab_size_multiple",
          "parallel_block_tied_norm",
          "reorder_and_upcast_attn",
          "rotary_emb_base",
          "rotary_emb_interleaved",
          "rotary_emb_scale_base",
          "rotary_scaling_factor",
          "scale_attn_by_inverse_layer_idx",
          "scale_attn_weights",
          "summary_activation",
          "summary_first_dropout",
          "summary_proj_to_labels",
          "summary_type",
          "summary_use_proj",
          "use_flash_attn",
          "use_xentropy"});
}

// Nussbaum et al. 2024, "Nomic Embed": BERT's blocks with a gate, rotary
// positions and no biases. Its first files have GPT-2's keys, later ones both.
Architecture ReadNomicBert(const ConfigJson& c) {
  Architecture a;
  const bool first = !c.Has("hidden_size") && c.Has("n_embd");
  if (first) {
    a.layers = c.Count("n_layer");
    a.hidden = c.Count("n_embd");
    a.heads = c.PositiveCount("n_head");
    a.intermediate = c.Count("n_inner");
    a.vocabulary = c.Count("vocab_size");
    a.positions = c.PositiveCount(c.Has("max_position_embeddings")
                                      ? "max_position_embeddings"
                                      : "n_positions");
  } else {
    ReadSizes(c, a);
  }
  ReadActivation(c, "hidden_act", "silu", a);
  if (c.Has("head_dim")) a.head_size = c.PositiveCount("head_dim");
  const char* const hidden = first ? "resid_pdrop" : "hidden_dropout_prob";
  a.dropout = c.Share(hidden);
  const CountedDropout counted = {hidden, a.dropout};
  ExpectDropoutOrNone(c, "attention_probs_dropout_prob", 0.0, counted);
  ExpectDropoutOrNone(c, "attn_pdrop", 0.0, counted);
  ExpectDropout(c, "embd_pdrop", a.dropout, counted);
  a.token_types = c.Count("type_vocab_size", 2);
  a.position_kind = model::PositionKind::kRotary;
  a.gated = true;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  ExpectFormsOfNomic(c);
  Ignore(c, {"classifier_dropout"});
  return a;
}

// Raffel et al. 2020, and Xue et al. 2021 (mT5), which has version 1.1's blocks
// where the file does not say.
Architecture ReadT5(const ConfigJson& c, bool version_1_1) {
  Architecture a;
  a.family = model::Family::kEncoderDecoder;
  a.layers = c.Count("num_layers");
  a.decoder_layers = c.Count("num_decoder_layers", a.layers);
  a.hidden = c.Count("d_model");
  a.heads = c.Count("num_heads");
  a.head_size = c.PositiveCount("d_kv", 64);
  a.intermediate = c.Count("d_ff");
  a.vocabulary = c.Count("vocab_size");
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  a.norm = model::Norm::kRms;
  a.norm_bias = false;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = model::PositionKind::kRelative;
  a.relative_buckets = c.Count("relative_attention_num_buckets", 32);
  a.scaled_scores = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  const std::string words =
      c.Text("feed_forward_proj", version_1_1 ? "gated-gelu" : "relu");
  constexpr std::string_view kGated = "gated-";
  a.gated = words.starts_with(kGated);
  const std::string function = a.gated ? words.substr(kGated.size()) : words;
  // T5Config takes GELU's tanh form where it is gated.
  SetActivation(
      c, "feed_forward_proj", words == "gated-gelu" ? "gelu_new" : function, a);
  a.dropout = c.Share("dropout_rate", 0.1);
  a.drops_activation = true;
  a.untied_output = !c.Flag("tie_word_embeddings", !version_1_1);
  // What the file says twice.
  Ignore(c,
         {"classifier_dropout",
          "dense_act_fn",
          "initializer_factor",
          "is_gated_act",
          "n_positions",
          "relative_attention_max_distance",
          "scale_decoder_outputs"});
  return a;
}

// Chung et al. 2023, "UniMax": mT5 with positions of each block's own.
Architecture ReadUmt5(const ConfigJson& c) {
  Architecture a = ReadT5(c, true);
  a.relative_bias_each_block = true;
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  Ignore(c, {"scalable_attention"});  // of published files, which nothing reads
  return a;
}

// What types of two sides differ in; of their classes where files do not say.
struct SidesOfType {
  bool norm_first = false;
  const char* activation = "gelu";
  double attention_dropout = 0.0;
};

// Two sides of the same dimensions, under the names that BART gave them.
Architecture ReadTwoSides(const ConfigJson& c, const SidesOfType& type) {
  Architecture a;
  a.family = model::Family::kEncoderDecoder;
  a.layers = c.Count("encoder_layers");
  a.decoder_layers = c.Count("decoder_layers");
  a.hidden = c.Count("d_model");
  a.heads = c.Count("encoder_attention_heads");
  a.intermediate = c.Count("encoder_ffn_dim");
  a.vocabulary = c.Count("vocab_size");
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  c.Expect("decoder_attention_heads", a.heads);
  c.Expect("decoder_ffn_dim", a.intermediate);
  if (type.norm_first) a.norm_placement = model::NormPlacement::kBefore;
  ReadActivation(c, "activation_function", type.activation, a);
  a.dropout = c.Share("dropout", 0.1);
  ExpectDropoutOrNone(
      c, "attention_dropout", type.attention_dropout, {"dropout", a.dropout});
  a.drops_activation = c.Share("activation_dropout") > 0;
  a.untied_output = !c.Flag("tie_word_embeddings", true);
  // Blocks that a step leaves out by chance are not counted.
  c.Expect("encoder_layerdrop", 0);
  c.Expect("decoder_layerdrop", 0);
  // Of Fairseq's files, where Transformers has what the type has.
  c.Expect("add_final_layer_norm", type.norm_first);
  c.Expect("normalize_before", type.norm_first);
  Ignore(c,
         {"add_bias_logits",
          "classif_dropout",
          "classifier_dropout",
          "extra_pos_embeddings",
          "gradient_checkpointing",
          "init_std",
          "layerdrop",
          "normalize_embedding",
          "num_hidden_layers",
          "replacing_rate",
          "save_step",
          "static_position_embeddings"});
  return a;
}

// Lewis et al. 2020; two rows of each table of positions are padding.
// `final_logits_bias` is a buffer of zeros.
Architecture ReadBart(const ConfigJson& c) {
  Architecture a = ReadTwoSides(c, {});
  a.position_offset = 2;
  a.positions = c.PositiveCount("max_position_embeddings") + a.position_offset;
  a.embedding_layer_norm = true;
  c.Expect("scale_embedding", false);
  return a;
}

// Liu et al. 2020: norms before, and one more behind each side. Its words are
// multiplied by a number, as BART's by 1.
Architecture ReadMbart(const ConfigJson& c) {
  Architecture a = ReadTwoSides(c, {.norm_first = true});
  a.position_offset = 2;
  a.positions = c.PositiveCount("max_position_embeddings") + a.position_offset;
  a.embedding_layer_norm = true;
  Ignore(c, {"scale_embedding"});
  return a;
}

// Sinusoids that do not train, beside words that are scaled, as the first
// Transformer has them.
Architecture ReadSinusoidal(const ConfigJson& c, const SidesOfType& type) {
  Architecture a = ReadTwoSides(c, type);
  // Classes do not scale where the file does not say.
  c.At("scale_embedding");
  c.Expect("scale_embedding", true);
  c.Has("max_position_embeddings");
  return a;
}

// Junczys-Dowmunt et al. 2018.
Architecture ReadMarian(const ConfigJson& c) {
  Architecture a = ReadSinusoidal(c, {});
  c.Expect("share_encoder_decoder_embeddings", true);
  c.Expect("decoder_vocab_size", a.vocabulary);
  return a;
}

// Zhang et al. 2020.
Architecture ReadPegasus(const ConfigJson& c) {
  return ReadSinusoidal(c, {.norm_first = true});
}

// Fan et al. 2021, and NLLB (Costa-jussà et al. 2022). Its class leaves blocks
// out by chance where the file does not say.
Architecture ReadM2m100(const ConfigJson& c) {
  c.At("encoder_layerdrop");
  c.At("decoder_layerdrop");
  return ReadSinusoidal(
      c, {.norm_first = true, .activation = "relu", .attention_dropout = 0.1});
}

constexpr std::array kEncoders = {
    ModelType{"albert", &ReadAlbert},
    ModelType{"bart", &ReadBart},
    ModelType{"bert", &ReadBert},
    ModelType{"camembert", &ReadRoberta},
    ModelType{"distilbert", &ReadDistilBert},
    ModelType{"electra", &ReadElectra},
    ModelType{"m2m_100", &ReadM2m100},
    ModelType{"marian", &ReadMarian},
    ModelType{"mbart", &ReadMbart},
    ModelType{"megatron-bert", &ReadMegatronBert},
    ModelType{"modernbert", &ReadModernBert},
    ModelType{"mt5", [](const ConfigJson& c) { return ReadT5(c, true); }},
    ModelType{"nomic_bert", &ReadNomicBert},
    ModelType{"pegasus", &ReadPegasus},
    ModelType{"roberta", &ReadRoberta},
    ModelType{"t5", [](const ConfigJson& c) { return ReadT5(c, false); }},
    ModelType{"umt5", &ReadUmt5},
    ModelType{"xlm-roberta", &ReadRoberta},
};

}  // namespace

std::span<const ModelType> EncoderTypes() { return kEncoders; }

}  // namespace trainfare::hardware
