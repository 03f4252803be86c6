// Types whose code comes with their files (auto_map), where what it computes is
// published: blocks that a type of Transformers has, too, under other keys.

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

// Bai et al. 2023: the first Qwen. Its inner width is said of both products of
// the gate together.
Architecture ReadFirstQwen(const ConfigJson& c) {
  Architecture usual;
  usual.positions = c.PositiveCount("seq_length", 8192);
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  a.intermediate /= 2;
  a.head_size = c.PositiveCount("kv_channels", 128);
  a.separate_projections = false;
  a.attention_bias = true;
  a.output_bias = a.feed_forward_bias = !c.Flag("no_bias", true);
  a.dropout = c.Share("emb_dropout_prob");
  ExpectDropout(c, "attn_dropout_prob", 0.0, {"emb_dropout_prob", a.dropout});
  c.Expect("rotary_pct", 1.0);
  Ignore(c,
         {"bf16",
          "fp16",
          "fp32",
          "onnx_safe",
          "rotary_emb_base",
          "scale_attn_weights",
          "softmax_in_fp32",
          "tokenizer_type",
          "use_cache_kernel",
          "use_cache_quantization",
          "use_dynamic_ntk",
          "use_flash_attn",
          "use_logn_attn"});
  return a;
}

// Cai et al. 2024, and the first InternLM: biases of attention where the file
// has them.
Architecture ReadInternLm(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.attention_bias = a.output_bias = c.Flag("bias", true);
  return a;
}

Architecture ReadInternLm2(const ConfigJson& c) {
  Architecture a = ReadInternLm(c);
  a.separate_projections = false;
  return a;
}

// Published without biases; which of them each key is of differs from code to
// code.
Architecture ReadInternLm3(const ConfigJson& c) {
  c.Expect("bias", false);
  c.Expect("qkv_bias", false);
  return ReadLlama(c, /*tied=*/false, UsualHeads(2));
}

// GLM et al. 2024, "ChatGLM": GLM-4's block with one matrix for queries, keys
// and values, and one for both products of the gate.
Architecture ReadChatGlm(const ConfigJson& c) {
  Architecture usual;
  usual.layers = c.PositiveCount("num_layers");
  usual.intermediate = c.PositiveCount("ffn_hidden_size");
  usual.vocabulary = c.PositiveCount("padded_vocab_size");
  usual.positions = c.PositiveCount("seq_length");
  usual.head_size = c.PositiveCount("kv_channels", 128);
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  if (c.Flag("multi_query_attention", false)) {
    a.key_value_heads = c.PositiveCount("multi_query_group_num", 1);
  }
  a.separate_projections = false;
  a.joint_gate = true;
  a.attention_bias = c.Flag("add_qkv_bias", false);
  a.rotary_head_size = RotarySize(a, 0.5);
  a.dropout = c.Share("hidden_dropout");
  ExpectDropout(c, "attention_dropout", 0.0, {"hidden_dropout", a.dropout});
  c.Expect("add_bias_linear", false);
  c.Expect("apply_residual_connection_post_layernorm", false);
  c.Expect("fp32_residual_connection", false);
  c.Expect("post_layer_norm", true);
  c.Expect("quantization_bit", 0);
  c.Expect("rmsnorm", true);
  Ignore(c,
         {"apply_query_key_layer_scaling",
          "attention_softmax_in_fp32",
          "bias_dropout_fusion",
          "classifier_dropout",
          "interleaved_qkv",
          "layernorm_epsilon",
          "multi_query_group_num",
          "original_rope",
          "rope_ratio"});
  return a;
}

// An et al. 2024: Llama's blocks, and Llama's keys in files of Transformers 5.
Architecture ReadExaone(const ConfigJson& c) {
  const bool of_5 = c.Has("num_hidden_layers");
  Architecture usual = of_5 ? UsualHeads(8) : Architecture();
  if (!of_5) usual.layers = c.PositiveCount("num_layers");
  Architecture a = ReadLlama(c, /*tied=*/!of_5, usual);
  if (c.Has("activation_function")) {
    ReadActivation(c, "activation_function", "silu", a);
  }
  ExpectDropout(c, "embed_dropout", 0.0, {"attention_dropout", a.dropout});
  ExpectDropout(c, "resid_dropout", 0.0, {"attention_dropout", a.dropout});
  return a;
}

// Hu et al. 2024: Llama's blocks with scales, as Granite has them.
Architecture ReadMiniCpm(const ConfigJson& c) {
  c.Expect("num_experts", 0);
  Ignore(c, {"dim_model_base", "scale_depth", "scale_emb"});
  return ReadLlama(c, /*tied=*/true);
}

// Yang et al. 2023, "Baichuan 2", and the first: Llama's blocks with one matrix
// for queries, keys and values. The class of the smaller ones has positions that
// rotate, under Llama's key; that of the larger ones ALiBi, and only how long a
// text may be. The second's logits are by rows of unit length, which files tell
// by their vocabulary alone.
Architecture ReadBaichuan(const ConfigJson& c) {
  constexpr int64_t kFirst = 64000;
  constexpr int64_t kSecond = 125696;
  const int64_t vocabulary = c.Count("vocab_size");
  if (vocabulary != kFirst && vocabulary != kSecond) {
    c.Fail("vocab_size",
           fmt::format("expected {} or {}, of the first or the second version, "
                       "whose logits differ, got {}",
                       kFirst,
                       kSecond,
                       vocabulary));
  }
  const bool rotates = c.Has("max_position_embeddings");
  Architecture usual;
  if (!rotates) usual.positions = c.PositiveCount("model_max_length");
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  a.separate_projections = false;
  if (!rotates) a.position_kind = model::PositionKind::kAlibi;
  a.unit_output_rows = vocabulary == kSecond;
  c.Expect("z_loss_weight", 0);
  Ignore(c, {"gradient_checkpointing", "model_max_length"});
  return a;
}

// Ling Team 2025, "Every FLOP Counts" (Ling-lite), and Ling 2.0 with norms of
// queries and keys, half of a head that rotates and groups of experts; Ring is
// of the same files. Nothing beside what both versions have is counted.
Architecture ReadBailingMoe(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.separate_projections = false;
  a.attention_bias = c.Flag("use_qkv_bias", false);
  a.output_bias = a.feed_forward_bias = c.Flag("use_bias", false);
  if (c.Flag("use_qk_norm", false)) {
    a.query_key_norm = model::QueryKeyNorm::kHead;
  }
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 1.0);
  c.At("num_experts");  // nothing is assumed where a file does not say
  ReadExperts(c, {}, a);
  a.expert_groups = c.PositiveCount("n_group", 1);
  a.expert_groups_per_token = c.PositiveCount("topk_group", 1);
  const CountedDropout counted = {"attention_dropout", a.dropout};
  ExpectDropout(c, "embedding_dropout", 0.0, counted);
  ExpectDropout(c, "output_dropout", 0.0, counted);
  c.Expect("moe_shared_expert_intermediate_size", a.expert_intermediate);
  c.Expect("norm_head", false);
  c.Expect("norm_softmax", false);
  c.Expect("use_rmsnorm", true);
  c.Expect("use_sliding_window", false);
  Ignore(c,
         {"max_window_layers",
          "moe_router_enable_expert_bias",
          "mtp_loss_scaling_factor",
          "multi_gate",
          "rotary_dim",
          "router_dtype",
          "score_function",
          "sliding_window"});
  return a;
}

constexpr std::array kOwnCode = {
    ModelType{"baichuan", &ReadBaichuan},
    ModelType{"bailing_moe", &ReadBailingMoe},
    ModelType{"chatglm", &ReadChatGlm},
    ModelType{"exaone", &ReadExaone},
    ModelType{"internlm", &ReadInternLm},
    ModelType{"internlm2", &ReadInternLm2},
    ModelType{"internlm3", &ReadInternLm3},
    ModelType{"minicpm", &ReadMiniCpm},
    ModelType{"qwen", &ReadFirstQwen},
};

}  // namespace

std::span<const ModelType> OwnCodeTypes() { return kOwnCode; }

}  // namespace trainfare::hardware
