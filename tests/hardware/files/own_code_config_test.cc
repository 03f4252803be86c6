// Types under keys of their own: those whose code comes with their files, and
// those before today's.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "hardware/files/model_config.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

model::Architecture Understood(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

std::string NotUnderstood(const std::string& text) {
  try {
    Understood(text);
  } catch (const model::InputError& error) {
    const std::string message = error.what();
    return message.substr(message.find(": ") + 2);
  }
  return "nothing refused";
}

struct Published {
  std::string_view json;
  int64_t parameters;
};

void CheckParameters(const Published& one) {
  CAPTURE(one.json);
  CHECK(model::TotalParameters(Understood(std::string(one.json))) ==
        one.parameters);
}

// What Transformers 4.57 builds on the meta device of a type with the same
// blocks (Llama, GLM, Qwen2, GLM-4.5 without norms, DeepSeek-V3), and what the
// models' pages say they have.
TEST_CASE("parameters of types with code of their own") {
  for (const Published& one :
       {// deepseek-ai/deepseek-moe-16b-base
        Published{
            R"({"model_type": "deepseek", "num_hidden_layers": 28,
                "hidden_size": 2048, "num_attention_heads": 16,
                "num_key_value_heads": 16, "intermediate_size": 10944,
                "vocab_size": 102400, "max_position_embeddings": 4096,
                "n_routed_experts": 64, "n_shared_experts": 2,
                "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
                "first_k_dense_replace": 1, "moe_layer_freq": 1})",
            16375728128},
        // moonshotai/Kimi-K2-Instruct
        Published{
            R"({"model_type": "kimi_k2", "num_hidden_layers": 61,
                "hidden_size": 7168, "num_attention_heads": 64,
                "num_key_value_heads": 64, "intermediate_size": 18432,
                "vocab_size": 163840, "max_position_embeddings": 131072,
                "q_lora_rank": 1536, "kv_lora_rank": 512,
                "n_routed_experts": 384, "num_experts_per_tok": 8,
                "moe_intermediate_size": 2048, "n_shared_experts": 1,
                "first_k_dense_replace": 1, "moe_layer_freq": 1})",
            1026408209408},
        // internlm/internlm-7b, internlm2-7b, internlm3-8b-instruct
        Published{
            R"({"model_type": "internlm", "num_hidden_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "intermediate_size": 11008, "vocab_size": 103168,
                "max_position_embeddings": 2048, "bias": true})",
            7321948160},
        Published{
            R"({"model_type": "internlm2", "num_hidden_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "num_key_value_heads": 8, "intermediate_size": 14336,
                "vocab_size": 92544, "max_position_embeddings": 32768,
                "bias": false, "attn_implementation": "eager",
                "rope_scaling": {"type": "dynamic", "factor": 2.0}})",
            7737708544},
        Published{
            R"({"model_type": "internlm3", "num_hidden_layers": 48,
                "hidden_size": 4096, "num_attention_heads": 32,
                "num_key_value_heads": 2, "head_dim": 128,
                "intermediate_size": 10240, "vocab_size": 128512,
                "max_position_embeddings": 32768, "bias": false,
                "qkv_bias": false})",
            8804241408},
        // THUDM/chatglm3-6b, glm-4-9b
        Published{
            R"({"model_type": "chatglm", "num_layers": 28,
                "hidden_size": 4096, "num_attention_heads": 32,
                "ffn_hidden_size": 13696, "padded_vocab_size": 65024,
                "seq_length": 8192, "kv_channels": 128,
                "multi_query_attention": true, "multi_query_group_num": 2,
                "add_qkv_bias": true, "add_bias_linear": false,
                "rmsnorm": true, "post_layer_norm": true})",
            6243584000},
        Published{
            R"({"model_type": "chatglm", "num_layers": 40,
                "hidden_size": 4096, "num_attention_heads": 32,
                "ffn_hidden_size": 13696, "padded_vocab_size": 151552,
                "seq_length": 131072, "kv_channels": 128,
                "multi_query_attention": true, "multi_query_group_num": 2,
                "add_qkv_bias": true, "rope_ratio": 500})",
            9399951360},
        // LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct
        Published{
            R"({"model_type": "exaone", "num_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "num_key_value_heads": 8, "head_dim": 128,
                "intermediate_size": 14336, "vocab_size": 102400,
                "max_position_embeddings": 32768, "embed_dropout": 0.0,
                "activation_function": "silu",
                "tie_word_embeddings": false})",
            7818448896},
        // openbmb/MiniCPM-2B-sft-bf16
        Published{
            R"({"model_type": "minicpm", "num_hidden_layers": 40,
                "hidden_size": 2304, "num_attention_heads": 36,
                "num_key_value_heads": 36, "intermediate_size": 5760,
                "vocab_size": 122753, "max_position_embeddings": 4096,
                "scale_emb": 12, "dim_model_base": 256,
                "scale_depth": 1.4})",
            2724880896},
        // baichuan-inc/Baichuan-7B, Baichuan-13B-Base: Llama's of so many words
        Published{
            R"({"model_type": "baichuan", "num_hidden_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "intermediate_size": 11008, "vocab_size": 64000,
                "max_position_embeddings": 4096, "hidden_act": "silu",
                "tie_word_embeddings": false})",
            7000559616},
        Published{
            R"({"model_type": "baichuan", "num_hidden_layers": 40,
                "hidden_size": 5120, "num_attention_heads": 40,
                "intermediate_size": 13696, "vocab_size": 64000,
                "model_max_length": 4096, "hidden_act": "silu",
                "gradient_checkpointing": false})",
            13264901120},
        // baichuan-inc/Baichuan2-7B-Base
        Published{
            R"({"model_type": "baichuan", "num_hidden_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "intermediate_size": 11008, "vocab_size": 125696,
                "max_position_embeddings": 4096, "model_max_length": 4096,
                "hidden_act": "silu", "z_loss_weight": 0})",
            7505973248},
        // Qwen/Qwen-7B
        Published{
            R"({"model_type": "qwen", "num_hidden_layers": 32,
                "hidden_size": 4096, "num_attention_heads": 32,
                "intermediate_size": 22016, "vocab_size": 151936,
                "seq_length": 8192, "kv_channels": 128, "no_bias": true,
                "attn_dropout_prob": 0.0, "emb_dropout_prob": 0.0,
                "rotary_pct": 1.0, "use_logn_attn": true})",
            7721324544}}) {
    CheckParameters(one);
  }
}

// Of Transformers 4.57.
TEST_CASE("parameters of decoders before today's, and of two sides") {
  for (const Published& one :
       {// EleutherAI/gpt-neo-1.3B
        Published{
            R"({"model_type": "gpt_neo", "num_layers": 24,
                "hidden_size": 2048, "num_heads": 16, "vocab_size": 50257,
                "max_position_embeddings": 2048, "window_size": 256,
                "intermediate_size": null,
                "attention_types": [[["global", "local"], 12]]})",
            1315575808},
        // Salesforce/codegen-350M-mono
        Published{
            R"({"model_type": "codegen", "n_layer": 20, "n_embd": 1024,
                "n_head": 16, "n_positions": 2048, "rotary_dim": 32,
                "vocab_size": 51200, "tie_word_embeddings": false})",
            356712448},
        // CohereLabs/c4ai-command-r-plus
        Published{
            R"({"model_type": "cohere", "num_hidden_layers": 64,
                "hidden_size": 12288, "num_attention_heads": 96,
                "num_key_value_heads": 8, "intermediate_size": 33792,
                "vocab_size": 256000, "max_position_embeddings": 131072,
                "use_qk_norm": true, "logit_scale": 0.8333333})",
            103810674688},
        // openai-community/openai-gpt
        Published{
            R"({"model_type": "openai-gpt", "n_layer": 12, "n_embd": 768,
                "n_head": 12, "n_positions": 512, "n_ctx": 512, "afn": "gelu",
                "vocab_size": 40478, "predict_special_tokens": true})",
            116534784},
        // UFNLP/gatortron-base
        Published{
            R"({"model_type": "megatron-bert", "num_hidden_layers": 24,
                "hidden_size": 1024, "num_attention_heads": 16,
                "intermediate_size": 4096, "vocab_size": 50176,
                "max_position_embeddings": 512, "type_vocab_size": 2})",
            355269634},
        // nvidia/Minitron-4B-Base, adept/persimmon-8b-base
        Published{
            R"({"model_type": "nemotron", "num_hidden_layers": 32,
                "hidden_size": 3072, "num_attention_heads": 24,
                "num_key_value_heads": 8, "head_dim": 128,
                "intermediate_size": 9216, "vocab_size": 256000,
                "max_position_embeddings": 4096, "hidden_act": "relu2",
                "partial_rotary_factor": 0.5, "norm_eps": 1e-05})",
            4190509056},
        Published{
            R"({"model_type": "persimmon", "num_hidden_layers": 36,
                "hidden_size": 4096, "num_attention_heads": 64,
                "intermediate_size": 16384, "vocab_size": 262144,
                "max_position_embeddings": 16384, "qk_layernorm": true,
                "partial_rotary_factor": 0.5, "rope_theta": 25000.0})",
            9397175296},
        // The class's own figures.
        Published{
            R"({"model_type": "arcee", "num_hidden_layers": 32,
                "hidden_size": 2560, "num_attention_heads": 32,
                "intermediate_size": 18432, "vocab_size": 32000,
                "max_position_embeddings": 4096, "hidden_act": "relu2"})",
            4022766080},
        // facebook/nllb-200-distilled-600M
        Published{
            R"({"model_type": "m2m_100", "encoder_layers": 12,
                "decoder_layers": 12, "d_model": 1024,
                "encoder_attention_heads": 16, "decoder_attention_heads": 16,
                "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
                "vocab_size": 256206, "max_position_embeddings": 1024,
                "encoder_layerdrop": 0, "decoder_layerdrop": 0,
                "activation_function": "relu", "scale_embedding": true})",
            615073792},
        // google/pegasus-large
        Published{
            R"({"model_type": "pegasus", "encoder_layers": 16,
                "decoder_layers": 16, "d_model": 1024,
                "encoder_attention_heads": 16, "decoder_attention_heads": 16,
                "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
                "vocab_size": 96103, "max_position_embeddings": 1024,
                "activation_function": "relu", "activation_dropout": 0.1,
                "attention_dropout": 0.1, "normalize_before": true,
                "add_final_layer_norm": true, "scale_embedding": true})",
            568699904},
        // mosaicml/mpt-30b
        Published{
            R"({"model_type": "mpt", "d_model": 7168, "n_heads": 64,
                "n_layers": 48, "vocab_size": 50432, "max_seq_len": 8192,
                "expansion_ratio": 4, "no_bias": true})",
            29957200896}}) {
    CheckParameters(one);
  }
}

TEST_CASE("Baichuan's positions and logits are of its sizes and versions") {
  const auto read = [](std::string_view keys) {
    return Understood(fmt::format(
        R"({{"model_type": "baichuan", "num_hidden_layers": 2,
             "hidden_size": 64, "num_attention_heads": 4,
             "intermediate_size": 128, {}}})",
        keys));
  };
  const model::Architecture first =
      read(R"("vocab_size": 64000, "max_position_embeddings": 4096)");
  CHECK(first.position_kind == model::PositionKind::kRotary);
  CHECK_FALSE(first.unit_output_rows);
  CHECK_FALSE(first.separate_projections);
  const model::Architecture larger =
      read(R"("vocab_size": 125696, "model_max_length": 4096)");
  CHECK(larger.position_kind == model::PositionKind::kAlibi);
  CHECK(larger.positions == 4096);
  CHECK(larger.unit_output_rows);
}

TEST_CASE("MPT's and GPT-Neo's blocks are those of their presets") {
  model::Architecture preset = model::FindArchitecture("mpt-7b");
  preset.name = "mpt";
  CHECK(Understood(
            R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32,
                "n_layers": 32, "vocab_size": 50432, "max_seq_len": 2048,
                "attn_config": {"alibi": true, "alibi_bias_max": 8,
                    "attn_impl": "torch", "attn_pdrop": 0,
                    "attn_type": "multihead_attention", "clip_qkv": null,
                    "attn_uses_sequence_id": false, "prefix_lm": false,
                    "qk_ln": false, "softmax_scale": null}})") == preset);
  const model::Architecture neo = Understood(
      R"({"model_type": "gpt_neo", "num_layers": 5, "hidden_size": 64,
          "num_heads": 4, "vocab_size": 100, "max_position_embeddings": 512,
          "attention_types": [[["global", "local"], 2], [["local"], 1]]})");
  CHECK(neo.windowed_layers == 3);
  CHECK(neo.window == 256);
  CHECK_FALSE(neo.scaled_scores);
}

TEST_CASE("keys of such types that change what is computed are refused") {
  struct Case {
    std::string_view type;
    std::string_view keys;
    std::string_view message;
  };
  const auto text = [](const Case& one) {
    // Sizes under the names that each of the types has.
    return fmt::format(
        R"({{"model_type": "{}", "hidden_size": 64, "d_model": 64,
             "n_heads": 4, "num_heads": 4, "num_attention_heads": 4,
             "n_layers": 2, "num_layers": 2, "num_hidden_layers": 2,
             "vocab_size": 100, "padded_vocab_size": 100,
             "intermediate_size": 128, "ffn_hidden_size": 128,
             "max_position_embeddings": 64, "seq_length": 64, {}}})",
        one.type,
        one.keys);
  };
  for (const Case& one :
       {Case{"mpt",
             R"("attn_config": {"clip_kv": 6})",
             "attn_config.clip_kv: not understood for model_type mpt; it may "
             "change what a step computes; did you mean \"clip_qkv\"?"},
        Case{"dbrx",
             R"("max_seq_len": 64, "attn_config": {"clip_qkv": 0})",
             "attn_config.clip_qkv: expected a number above 0, got 0"},
        Case{"dbrx",
             R"("max_seq_len": 64, "attn_config": {"qk_ln": true})",
             "attn_config.qk_ln: not understood for model_type dbrx; it may "
             "change what a step computes"},
        Case{"dbrx",
             R"("max_seq_len": 64, "attn_config": {},
                "ffn_config": {"moe_bias": true})",
             "ffn_config.moe_bias: not understood for model_type dbrx; it may "
             "change what a step computes"},
        Case{"dbrx",
             R"("max_seq_len": 64, "attn_config": {},
                "ffn_config": {"ffn_act_fn": {"name": "tanhh"}})",
             "ffn_config.ffn_act_fn.name: expected silu, gelu, "},
        Case{"dbrx",
             R"("max_seq_len": 64, "attn_config": {},
                "ffn_config": {"ffn_act_fn": {"approximate": "tanh"}})",
             "ffn_config.ffn_act_fn.name: missing"},
        Case{"dbrx", R"("max_seq_len": 64)", "attn_config: missing"},
        Case{"baichuan",
             R"("model_max_length": 4096)",
             "vocab_size: expected 64000 or 125696, of the first or the "
             "second version, whose logits differ, got 100"},
        Case{"mpt",
             R"("attn_config": {"alibi": false})",
             "attn_config.alibi: expected true, got false"},
        Case{"mpt",
             R"("attn_config": {"attn_pdrop": 1})",
             "attn_config.attn_pdrop: expected a number from 0 to below 1, got "
             "1"},
        Case{"mpt",
             R"("attn_config": [])",
             "attn_config: expected an object, got []"},
        Case{"mpt",
             R"("no_bias": false)",
             "no_bias: expected true, got false; nothing else is counted"},
        Case{"gpt_neo",
             R"("attention_types": [[["global"], 1]])",
             "attention_types: expected lists of global and local, each with "
             "how often, of 2 blocks, got [[[\"global\"],1]]"},
        Case{"gpt_neo",
             R"("attention_types": [[["global", "block"], 1]])",
             "attention_types: expected lists of global and local, each with "
             "how often, of 2 blocks, got [[[\"global\",\"block\"],1]]"},
        Case{"gpt_neo", R"("window_size": 4)", "attention_types: missing"},
        Case{"cohere2",
             R"("use_qk_norm": true)",
             "use_qk_norm: expected false, got true; nothing else is counted"},
        Case{"chatglm",
             R"("add_bias_linear": true)",
             "add_bias_linear: expected false, got true; nothing else is "
             "counted"},
        Case{"internlm3",
             R"("qkv_bias": true)",
             "qkv_bias: expected false, got true; nothing else is counted"},
        Case{"exaone",
             R"("embed_dropout": 0.1)",
             "embed_dropout: expected 0 as attention_dropout, got 0.1; one "
             "share is counted for both"},
        Case{"qwen",
             R"("rotary_pct": 0.5)",
             "rotary_pct: expected 1.0, got 0.5; nothing else is counted"},
        Case{"deepseek",
             R"("num_experts_per_tok": 2)",
             "n_routed_experts: missing"},
        Case{"megatron-bert",
             R"("position_embedding_type": "relative_key")",
             "position_embedding_type: expected \"absolute\", got "
             "\"relative_key\""},
        Case{"m2m_100",
             R"("encoder_layerdrop": 0.05)",
             "decoder_layerdrop: missing"}}) {
    CAPTURE(one.type);
    CAPTURE(one.keys);
    const std::string message = NotUnderstood(text(one));
    CAPTURE(message);
    CHECK(message.starts_with(one.message));
  }
  CHECK(NotUnderstood(
            R"({"model_type": "chatglm", "num_layers": 2, "hidden_size": 64,
                "num_attention_heads": 4, "ffn_hidden_size": 128,
                "padded_vocab_size": 100, "seq_length": 64,
                "kv_channels": 16, "pre_seq_len": 128})") ==
        "pre_seq_len: not understood for model_type chatglm; it may change "
        "what a step computes");
  CHECK(NotUnderstood(
            R"({"model_type": "minicpm", "num_hidden_layers": 2,
                "hidden_size": 64, "num_attention_heads": 4,
                "intermediate_size": 128, "vocab_size": 100,
                "max_position_embeddings": 64,
                "sparse_config": {"topk": 64}})") ==
        "sparse_config: not understood for model_type minicpm; it may change "
        "what a step computes");
}

}  // namespace
}  // namespace trainfare::hardware
