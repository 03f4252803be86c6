// Files of models of 2025 and 2026 as they are published: the same as their
// presets, whose parameters are those of Transformers; and what Transformers 5
// writes where version 4 wrote it elsewhere.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/model_config.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

model::Architecture OfHub(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

void CheckIsPreset(const std::string& text, std::string_view preset) {
  CAPTURE(preset);
  model::Architecture read = OfHub(text);
  const model::Architecture& known = model::FindArchitecture(preset);
  read.name = known.name;
  CHECK(read == known);
}

std::string RefusalOf(const std::string& text) {
  try {
    OfHub(text);
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "nothing refused";
}

// `word`, as often as `times`, and `last` behind it, over and over.
std::string Listed(int blocks,
                   std::string_view word,
                   int times,
                   std::string_view last) {
  std::vector<std::string> words;
  for (int block = 0; block < blocks; ++block) {
    const bool ends = block % (times + 1) == times;
    words.push_back(fmt::format("\"{}\"", ends ? last : word));
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

constexpr std::string_view kYarn =
    R"("rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0,
           "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
           "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384,
           "rope_theta": 1000000.0, "rope_type": "yarn", "type": "yarn"})";

// Around it, a model of images.
std::string Mistral3(std::string_view sizes) {
  return fmt::format(
      R"({{"architectures": ["Mistral3ForConditionalGeneration"],
           "dtype": "bfloat16", "image_token_index": 10,
           "model_type": "mistral3", "multimodal_projector_bias": false,
           "text_config": {{"attention_dropout": 0.0, "head_dim": 128,
               "hidden_act": "silu", "initializer_range": 0.02,
               "max_position_embeddings": 262144, "model_type": "ministral3",
               "num_attention_heads": 32, "num_key_value_heads": 8,
               "rms_norm_eps": 1e-05, {}, "sliding_window": null,
               "use_cache": true, "vocab_size": 131072, {}}},
           "vision_config": {{"model_type": "pixtral"}},
           "vision_feature_layer": -1}})",
      kYarn,
      sizes);
}

TEST_CASE("Ministral 3 as published, of which the language model is read") {
  CheckIsPreset(Mistral3(R"("hidden_size": 3072, "intermediate_size": 9216,
                  "num_hidden_layers": 26, "tie_word_embeddings": true)"),
                "ministral-3-3b");
  CheckIsPreset(Mistral3(R"("hidden_size": 4096, "intermediate_size": 14336,
                  "num_hidden_layers": 34)"),
                "ministral-3-8b");
  CheckIsPreset(Mistral3(R"("hidden_size": 5120, "intermediate_size": 16384,
                  "num_hidden_layers": 40)"),
                "ministral-3-14b");
}

TEST_CASE("Mistral Small 4 as published") {
  CheckIsPreset(fmt::format(
                    R"({{"model_type": "mistral3", "tie_word_embeddings": false,
               "text_config": {{"attention_bias": false,
                   "attention_dropout": 0.0, "first_k_dense_replace": 0,
                   "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
                   "intermediate_size": 12288, "kv_lora_rank": 256,
                   "max_position_embeddings": 1048576, "mlp_bias": false,
                   "model_type": "mistral4", "moe_intermediate_size": 2048,
                   "n_group": 1, "n_routed_experts": 128,
                   "n_shared_experts": 1, "norm_topk_prob": true,
                   "num_attention_heads": 32, "num_experts_per_tok": 4,
                   "num_hidden_layers": 36, "num_key_value_heads": 32,
                   "q_lora_rank": 1024, "qk_head_dim": 128,
                   "qk_nope_head_dim": 64, "qk_rope_head_dim": 64,
                   "rope_interleave": true, {}, "topk_group": 1,
                   "v_head_dim": 128, "vocab_size": 131072,
                   "sliding_window": null, "tie_word_embeddings": false}},
               "vision_config": {{"model_type": "pixtral"}}}})",
                    kYarn),
                "mistral-small-4-119b");
}

// Their language models are Qwen3's, for longer texts.
TEST_CASE("Qwen3-VL as published, of which the language model is read") {
  const auto text_of = [](std::string_view type, std::string_view sizes) {
    model::Architecture a = OfHub(fmt::format(
        R"({{"model_type": "qwen3_vl", "image_token_id": 151655,
             "text_config": {{"attention_bias": false,
                 "attention_dropout": 0.0, "head_dim": 128,
                 "hidden_act": "silu", "max_position_embeddings": 262144,
                 "model_type": "{}", "rms_norm_eps": 1e-06,
                 "rope_scaling": {{"mrope_interleaved": true,
                     "mrope_section": [24, 20, 20], "rope_type": "default"}},
                 "rope_theta": 5000000, "vocab_size": 151936, {}}},
             "tie_word_embeddings": false,
             "vision_config": {{"model_type": "qwen3_vl"}}}})",
        type,
        sizes));
    a.positions = 40960;
    return a;
  };
  model::Architecture dense = model::FindArchitecture("qwen3-8b");
  dense.name = "qwen3_vl_text (of qwen3_vl, without what is around it)";
  CHECK(text_of("qwen3_vl_text",
                R"("hidden_size": 4096, "intermediate_size": 12288,
                   "num_attention_heads": 32, "num_hidden_layers": 36,
                   "num_key_value_heads": 8)") == dense);
  model::Architecture experts = model::FindArchitecture("qwen3-30b-a3b");
  experts.name = "qwen3_vl_moe_text (of qwen3_vl, without what is around it)";
  CHECK(text_of("qwen3_vl_moe_text",
                R"("decoder_sparse_step": 1, "hidden_size": 2048,
                   "intermediate_size": 6144, "mlp_only_layers": [],
                   "moe_intermediate_size": 768, "norm_topk_prob": true,
                   "num_attention_heads": 32, "num_experts": 128,
                   "num_experts_per_tok": 8, "num_hidden_layers": 48,
                   "num_key_value_heads": 4)") == experts);
}

TEST_CASE("MiniMax-M2 as published") {
  std::vector<int> kinds(62, 1);
  const auto file = [&](std::string_view rotates) {
    return fmt::format(
        R"({{"model_type": "minimax_m2", "attention_dropout": 0.0,
             "attn_type_list": [{}],
             "auto_map": {{"AutoConfig": "configuration_minimax_m2.A"}},
             "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
             "intermediate_size": 1536, "max_position_embeddings": 196608,
             "mtp_transformer_layers": 1, "num_attention_heads": 48,
             "num_experts_per_tok": 8, "num_hidden_layers": 62,
             "num_key_value_heads": 8, "num_local_experts": 256,
             "num_mtp_modules": 3, "output_router_logits": false,
             "qk_norm_type": "per_layer", "rms_norm_eps": 1e-06,
             "rope_theta": 5000000, {},
             "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
             "scoring_func": "sigmoid", "shared_intermediate_size": 0,
             "sliding_window": null, "tie_word_embeddings": false,
             "quantization_config": {{"quant_method": "fp8"}},
             "use_mtp": true, "use_qk_norm": true, "use_routing_bias": true,
             "vocab_size": 200064}})",
        fmt::join(kinds, ", "),
        rotates);
  };
  CheckIsPreset(file(R"("rotary_dim": 64)"), "minimax-m2");
  CheckIsPreset(file(R"("partial_rotary_factor": 0.5)"), "minimax-m2");
  CHECK(OfHub(file(R"("use_cache": true)")).rotary_head_size == 0);
  kinds[3] = 0;  // linear attention, as MiniMax-Text-01 has it
  CHECK(RefusalOf(file(R"("rotary_dim": 64)"))
            .starts_with("config.json:2:32: attn_type_list: expected one count "
                         "for all blocks, got [1"));
  kinds.assign(62, 0);
  CHECK(
      RefusalOf(file(R"("rotary_dim": 64)"))
          .starts_with("config.json:2:32: attn_type_list: expected 1 of every "
                       "block, got [0"));
}

TEST_CASE("GLM-4.7-Flash as published") {
  CheckIsPreset(
      R"({"model_type": "glm4_moe_lite", "attention_bias": false,
          "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 2048,
          "intermediate_size": 10240, "max_position_embeddings": 202752,
          "moe_intermediate_size": 1536, "topk_method": "noaux_tc",
          "norm_topk_prob": true, "num_attention_heads": 20, "n_group": 1,
          "topk_group": 1, "n_routed_experts": 64, "n_shared_experts": 1,
          "routed_scaling_factor": 1.8, "num_experts_per_tok": 4,
          "first_k_dense_replace": 1, "num_hidden_layers": 47,
          "num_key_value_heads": 20, "num_nextn_predict_layers": 1,
          "partial_rotary_factor": 1.0, "rms_norm_eps": 1e-05,
          "rope_scaling": null, "rope_theta": 1000000, "q_lora_rank": 768,
          "kv_lora_rank": 512, "qk_nope_head_dim": 192,
          "qk_rope_head_dim": 64, "v_head_dim": 256,
          "tie_word_embeddings": false, "vocab_size": 154880})",
      "glm-4.7-flash");
}

TEST_CASE("Solar Open as published") {
  CheckIsPreset(
      R"({"model_type": "solar_open", "partial_rotary_factor": 1.0,
          "hidden_size": 4096, "num_hidden_layers": 48,
          "num_attention_heads": 64, "head_dim": 128,
          "num_key_value_heads": 8, "vocab_size": 196608,
          "intermediate_size": 10240, "moe_intermediate_size": 1280,
          "rms_norm_eps": 1e-05, "rope_theta": 1000000,
          "max_position_embeddings": 131072, "n_routed_experts": 128,
          "n_shared_experts": 1, "norm_topk_prob": true,
          "routed_scaling_factor": 1.0, "num_experts_per_tok": 8,
          "tie_word_embeddings": false, "first_k_dense_replace": 0,
          "rope_scaling": {"type": "yarn", "factor": 2.0,
              "original_max_position_embeddings": 65536}})",
      "solar-open-100b");
}

TEST_CASE("K-EXAONE as published, before and since its class") {
  const auto file = [](std::string_view dense) {
    return fmt::format(
        R"({{"model_type": "exaone_moe", "attention_dropout": 0.0,
             "head_dim": 128, "hidden_act": "silu", "hidden_size": 6144,
             "intermediate_size": 18432, "layer_types": {},
             "max_position_embeddings": 262144, "moe_intermediate_size": 2048,
             "n_group": 1, "norm_topk_prob": true, "num_attention_heads": 64,
             "num_experts": 128, "num_experts_per_tok": 8,
             "num_hidden_layers": 48, "num_key_value_heads": 8,
             "num_nextn_predict_layers": 1, "num_shared_experts": 1,
             "rope_theta": 1000000, "routed_scaling_factor": 2.5,
             "scoring_func": "sigmoid", "sliding_window": 128,
             "sliding_window_pattern": "LLLG", "tie_word_embeddings": false,
             "topk_group": 1, "topk_method": "noaux_tc",
             "vocab_size": 153600, {}}})",
        Listed(48, "sliding_attention", 3, "full_attention"),
        dense);
  };
  std::vector<std::string> flags(48, "true");
  flags[0] = "false";
  std::vector<std::string> words(48, "\"sparse\"");
  words[0] = "\"dense\"";
  const auto flagged = [&] {
    return file(
        fmt::format(R"("first_last_k_dense_replace": 1, "is_moe_layer": [{}])",
                    fmt::join(flags, ", ")));
  };
  const auto worded = [&] {
    return file(
        fmt::format(R"("mlp_layer_types": [{}])", fmt::join(words, ", ")));
  };
  CheckIsPreset(flagged(), "k-exaone-236b-a23b");
  CheckIsPreset(worded(), "k-exaone-236b-a23b");
  flags[2] = "false";
  CHECK(RefusalOf(flagged()).ends_with(
      "is_moe_layer[2]: expected false of the first 1 blocks "
      "and true of those behind them, got false"));
  words[2] = "\"dense\"";
  CHECK(RefusalOf(worded()).ends_with(
      "mlp_layer_types[2]: expected sparse, as before it, got "
      "dense; blocks without experts are counted where they "
      "are the first"));
  words[2] = "\"moe\"";
  CHECK(RefusalOf(worded()).ends_with(
      "mlp_layer_types[2]: expected dense or sparse, got "
      "\"moe\""));
}

TEST_CASE("Ling as published, of both versions") {
  CheckIsPreset(
      R"({"model_type": "bailing_moe", "attention_dropout": 0.0,
          "architectures": ["BailingMoeForCausalLM"],
          "auto_map": {"AutoConfig": "configuration_bailing_moe.A"},
          "first_k_dense_replace": 0, "hidden_act": "silu",
          "hidden_size": 2048, "initializer_range": 0.006,
          "intermediate_size": 1408, "max_position_embeddings": 32768,
          "moe_intermediate_size": 1408, "num_experts": 64,
          "num_shared_experts": 2, "norm_topk_prob": true,
          "num_attention_heads": 16, "num_experts_per_tok": 6,
          "num_hidden_layers": 28, "num_key_value_heads": 4,
          "pretraining_tp": 1, "rope_scaling": null, "rope_theta": 600000,
          "tie_word_embeddings": false, "use_bias": false,
          "use_qkv_bias": false, "vocab_size": 126464,
          "output_router_logits": false, "embedding_dropout": 0.0,
          "norm_head": false, "norm_softmax": false, "output_dropout": 0.0})",
      "ling-lite-1.5");
  // By hand: attention's 2048 x 128 x (16 + 2 x 4) + 2048 x 2048 weights and
  // norms of 2 x 2048; 64 experts and two more of 3 x 2048 x 1408, and a router
  // of 64 rows; 28 of these, tables of 2 x 126464 rows, and a norm.
  const int64_t block =
      2048LL * (128 * 24 + 2048 + 2) + 66LL * 3 * 2048 * 1408 + 64LL * 2048;
  CHECK(model::TotalParameters(model::FindArchitecture("ling-lite-1.5")) ==
        28 * block + 2LL * 126464 * 2048 + 2048);
  CheckIsPreset(
      R"({"model_type": "bailing_moe", "attention_dropout": 0.0,
          "architectures": ["BailingMoeV2ForCausalLM"],
          "num_hidden_layers": 20, "num_nextn_predict_layers": 0,
          "hidden_size": 2048, "intermediate_size": 5120,
          "first_k_dense_replace": 1, "hidden_act": "silu",
          "moe_intermediate_size": 512,
          "moe_shared_expert_intermediate_size": 512,
          "num_shared_experts": 1, "num_experts": 256,
          "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
          "norm_topk_prob": true, "routed_scaling_factor": 2.5,
          "moe_router_enable_expert_bias": true, "score_function": "sigmoid",
          "router_dtype": "fp32", "num_attention_heads": 16,
          "num_key_value_heads": 4, "head_dim": 128, "use_qk_norm": true,
          "partial_rotary_factor": 0.5, "rope_theta": 600000,
          "rope_scaling": null, "use_bias": false, "use_qkv_bias": false,
          "use_rmsnorm": true, "embedding_dropout": 0.0,
          "output_dropout": 0.0, "tie_word_embeddings": false,
          "max_position_embeddings": 32768, "vocab_size": 157184})",
      "ling-mini-2.0");
}

TEST_CASE("ERNIE 4.5 300B and Hunyuan-A13B as published") {
  CheckIsPreset(
      R"({"model_type": "ernie4_5_moe", "hidden_act": "silu",
          "hidden_size": 8192, "intermediate_size": 28672,
          "max_position_embeddings": 131072, "moe_capacity": [64, 64, 64],
          "moe_gate": "topk", "moe_intermediate_size": 3584, "moe_k": 8,
          "moe_layer_end_index": 53, "moe_layer_interval": 1,
          "moe_layer_start_index": 3, "moe_num_experts": 64,
          "moe_num_shared_experts": 0, "moe_use_aux_free": true,
          "num_attention_heads": 64, "num_hidden_layers": 54,
          "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
          "tie_word_embeddings": false, "use_bias": false,
          "vocab_size": 103424})",
      "ernie-4.5-300b-a47b");
  std::string eights = "8";
  for (int block = 1; block < 32; ++block) eights += ", 8";
  CheckIsPreset(fmt::format(
                    R"({{"model_type": "hunyuan_v1_moe", "hidden_size": 4096,
               "num_hidden_layers": 32, "num_attention_heads": 32,
               "num_key_value_heads": 8, "head_dim": 128,
               "intermediate_size": 3072, "max_position_embeddings": 32768,
               "moe_topk": [{}], "num_experts": 64, "num_shared_expert": 1,
               "rope_scaling": {{"type": "dynamic", "alpha": 1000.0}},
               "use_qk_norm": true, "vocab_size": 128167}})",
                    eights),
                "hunyuan-a13b");
}

TEST_CASE("Hy3 and Mellum 2 as published") {
  CheckIsPreset(
      R"({"model_type": "hy_v3", "vocab_size": 120832, "hidden_size": 4096,
          "intermediate_size": 13312, "num_hidden_layers": 80,
          "num_attention_heads": 64, "num_key_value_heads": 8,
          "hidden_act": "silu", "max_position_embeddings": 262144,
          "rope_parameters": {"rope_theta": 11158840.0,
              "rope_type": "default"},
          "head_dim": 128, "tie_word_embeddings": false,
          "moe_intermediate_size": 1536, "expert_hidden_dim": 1536,
          "num_experts": 192, "num_experts_per_tok": 8,
          "num_shared_experts": 1, "first_k_dense_replace": 1,
          "num_nextn_predict_layers": 1, "qk_norm": true, "route_norm": true,
          "moe_router_use_sigmoid": true,
          "moe_router_enable_expert_bias": true,
          "router_scaling_factor": 2.826, "output_router_logits": true,
          "enable_lm_head_fp32": true, "use_grouped_mm": false})",
      "hy3");
  std::string sparse = "\"sparse\"";
  for (int block = 1; block < 28; ++block) sparse += ", \"sparse\"";
  CheckIsPreset(fmt::format(
                    R"({{"model_type": "mellum", "attention_bias": false,
               "head_dim": 128, "hidden_act": "silu", "hidden_size": 2304,
               "intermediate_size": 7168, "layer_types": {},
               "mlp_layer_types": [{}], "max_position_embeddings": 131072,
               "max_window_layers": 0, "moe_intermediate_size": 896,
               "norm_topk_prob": true, "num_attention_heads": 32,
               "num_experts": 64, "num_experts_per_tok": 8,
               "num_hidden_layers": 28, "num_key_value_heads": 4,
               "output_router_logits": false,
               "rope_parameters": {{
                   "full_attention": {{"rope_type": "yarn", "factor": 16.0,
                       "rope_theta": 500000.0}},
                   "sliding_attention": {{"rope_type": "default"}}}},
               "sliding_window": 1024, "tie_word_embeddings": false,
               "use_sliding_window": true, "vocab_size": 98304}})",
                    Listed(28, "sliding_attention", 3, "full_attention"),
                    sparse),
                "mellum2-12b-a2.5b");
}

// LiquidAI/LFM2-1.2B before its class had words for blocks, and since;
// LFM2-8B-A1B.
TEST_CASE("LFM2 as published, before and since its class") {
  const std::string sizes =
      R"("model_type": "lfm2", "conv_L_cache": 3, "conv_bias": false,
         "hidden_size": 2048, "max_position_embeddings": 128000,
         "norm_eps": 1e-05, "num_attention_heads": 32,
         "num_hidden_layers": 16, "num_key_value_heads": 8,
         "rope_theta": 1000000.0, "use_cache": true, "vocab_size": 65536)";
  CheckIsPreset(fmt::format(
                    R"({{{}, "block_auto_adjust_ff_dim": true,
                         "block_dim": 2048, "block_ff_dim": 12288,
                         "block_ffn_dim_multiplier": 1.0,
                         "block_mlp_init_scale": 1.0,
                         "block_multiple_of": 256, "block_norm_eps": 1e-05,
                         "block_out_init_scale": 1.0, "block_use_swiglu": true,
                         "block_use_xavier_init": true, "conv_dim": 2048,
                         "conv_dim_out": 2048, "conv_use_xavier_init": true,
                         "full_attn_idxs": [2, 5, 8, 10, 12, 14],
                         "num_heads": 32, "use_pos_enc": true}})",
                    sizes),
                "lfm2-1.2b");
  const std::string words =
      R"("conv", "conv", "full_attention", "conv", "conv", "full_attention",
         "conv", "conv", "full_attention", "conv", "full_attention", "conv",
         "full_attention", "conv", "full_attention", "conv")";
  CheckIsPreset(
      fmt::format(R"({{{}, "layer_types": [{}], "intermediate_size": 8192,
                       "block_auto_adjust_ff_dim": false,
                       "tie_embedding": true}})",
                  sizes,
                  words),
      "lfm2-1.2b");
  CHECK(RefusalOf(fmt::format(R"({{{}, "block_ff_dim": 12288,
                                   "full_attn_idxs": [2, 16]}})",
                              sizes))
            .ends_with("full_attn_idxs[1]: expected one of 16 blocks, got 16"));
  CHECK(RefusalOf(fmt::format(R"({{{}, "layer_types": [{}]}})", sizes, words))
            .ends_with("intermediate_size: missing"));
  CheckIsPreset(fmt::format(
                    R"({{"model_type": "lfm2_moe", "conv_L_cache": 3,
                         "conv_bias": false, "hidden_size": 2048,
                         "intermediate_size": 7168, "layer_types": {},
                         "max_position_embeddings": 128000,
                         "moe_intermediate_size": 1792, "norm_eps": 1e-05,
                         "norm_topk_prob": true, "num_attention_heads": 32,
                         "num_dense_layers": 2, "num_experts": 32,
                         "num_experts_per_tok": 4, "num_hidden_layers": 24,
                         "num_key_value_heads": 8, "rope_theta": 1000000.0,
                         "routed_scaling_factor": 1.0, "use_expert_bias": true,
                         "vocab_size": 65536}})",
                    Listed(24, "conv", 3, "full_attention")),
                "lfm2-8b-a1b");
}

// swiss-ai/Apertus-8B-2509
TEST_CASE("Apertus as published") {
  const auto file = [](std::string_view post_norm) {
    return fmt::format(
        R"({{"architectures": ["ApertusForCausalLM"],
             "attention_bias": false, "attention_dropout": 0.0,
             "hidden_act": "xielu", "hidden_dropout": 0.0,
             "hidden_size": 4096, "intermediate_size": 21504,
             "max_position_embeddings": 65536, "mlp_bias": false,
             "model_type": "apertus", "num_attention_heads": 32,
             "num_hidden_layers": 32, "num_key_value_heads": 8,
             "post_norm": {}, "qk_norm": true, "rms_norm_eps": 1e-05,
             "rope_scaling": {{"factor": 8.0, "high_freq_factor": 4.0,
                 "low_freq_factor": 1.0, "rope_type": "llama3",
                 "original_max_position_embeddings": 8192}},
             "rope_theta": 12000000, "tie_word_embeddings": false,
             "vocab_size": 131072}})",
        post_norm);
  };
  CheckIsPreset(file("false"), "apertus-8b");
  CHECK(RefusalOf(file("true"))
            .ends_with("post_norm: expected false, got true; nothing else is "
                       "counted"));
}

// arcee-ai/Trinity-Mini
TEST_CASE("Trinity as published") {
  CheckIsPreset(
      fmt::format(
          R"({{"architectures": ["AfmoeForCausalLM"], "attention_dropout": 0.0,
               "global_attn_every_n_layers": 4, "head_dim": 128,
               "hidden_act": "silu", "hidden_size": 2048,
               "intermediate_size": 6144, "layer_types": {},
               "load_balance_coeff": 0.001, "max_position_embeddings": 131072,
               "model_type": "afmoe", "moe_intermediate_size": 1024,
               "mup_enabled": true, "n_group": 1, "num_attention_heads": 32,
               "num_dense_layers": 2, "num_expert_groups": 1,
               "num_experts": 128, "num_experts_per_tok": 8,
               "num_hidden_layers": 32, "num_key_value_heads": 4,
               "num_limited_groups": 1, "num_shared_experts": 1,
               "rms_norm_eps": 1e-05, "rope_scaling": null,
               "rope_theta": 10000, "route_norm": true, "route_scale": 2.826,
               "score_func": "sigmoid", "sliding_window": 2048,
               "tie_word_embeddings": false, "topk_group": 1,
               "use_grouped_mm": true, "vocab_size": 200192}})",
          Listed(32, "sliding_attention", 3, "full_attention")),
      "trinity-mini");
}

TEST_CASE("a file that says twice how many experts it has says one number") {
  const auto file = [](std::string_view experts) {
    return fmt::format(
        R"({{"model_type": "qwen3_moe", "num_hidden_layers": 2,
             "hidden_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 4, "intermediate_size": 128,
             "vocab_size": 100, "max_position_embeddings": 64, {}}})",
        experts);
  };
  CHECK(OfHub(file(R"("num_experts": 16)")).experts == 16);
  CHECK(OfHub(file(R"("num_local_experts": 16)")).experts == 16);
  CHECK(OfHub(file(R"("num_experts": 16, "num_local_experts": 16)")).experts ==
        16);
  CHECK(RefusalOf(file(R"("num_experts": 16, "num_local_experts": 8)"))
            .ends_with("num_experts: expected 8, got 16; nothing else is "
                       "counted"));
}

// As of Cohere's model for code: the first block has no experts, and sees all
// with positions.
TEST_CASE("Cohere 2 with experts as published") {
  std::vector<std::string> blocks;
  for (int block = 0; block < 49; ++block) {
    blocks.push_back(block % 4 == 0 ? "\"full_attention\""
                                    : "\"sliding_attention\"");
  }
  const model::Architecture a = OfHub(fmt::format(
      R"({{"model_type": "cohere2_moe", "hidden_size": 2048, "head_dim": 128,
           "num_hidden_layers": 49, "intermediate_size": 768,
           "prefix_dense_intermediate_size": 3072, "num_attention_heads": 32,
           "num_key_value_heads": 4, "vocab_size": 262144,
           "num_experts": 128, "num_experts_per_tok": 8,
           "num_shared_experts": 0, "first_k_dense_replace": 1,
           "prefix_dense_sliding_window_pattern": 1, "layer_types": [{}],
           "expert_selection_fn": "sigmoid", "sliding_window": 4096,
           "rope_theta": 50000, "max_position_embeddings": 500000,
           "use_parallel_block": true, "use_qk_norm": false,
           "norm_topk_prob": false, "rms_norm_eps": 1e-06,
           "layer_norm_eps": 1e-05}})",
      fmt::join(blocks, ", ")));
  CHECK(a.norm == model::Norm::kRms);
  CHECK(a.parallel_block);
  CHECK(a.shared_norm);
  CHECK_FALSE(a.untied_output);
  CHECK(a.windowed_layers == 36);
  CHECK(a.unrotated_layers == 12);
  CHECK(a.dense_layers == 1);
  CHECK(a.intermediate == 3072);
  CHECK(a.expert_intermediate == 768);
  CHECK(a.shared_intermediate == 0);
}

TEST_CASE("HyperCLOVA X and Youtu-LLM as published") {
  CheckIsPreset(
      R"({"model_type": "hyperclovax", "attention_bias": false,
          "attention_dropout": 0.0, "attention_multiplier": 0.0078125,
          "attn_pdrop": 0.0, "embd_pdrop": 0.0, "embedding_multiplier": 10.0,
          "end_token_id": 100257, "head_dim": 128, "hidden_act": "silu",
          "hidden_size": 6144, "intermediate_size": 14336,
          "logits_scaling": 0.125, "max_position_embeddings": 131072,
          "mlp_bias": false, "num_attention_heads": 48,
          "num_hidden_layers": 38, "num_key_value_heads": 8,
          "pretraining_tp": 1, "resid_pdrop": 0.0, "residual_multiplier": 1.0,
          "rope_scaling": null, "rope_theta": 100000000,
          "summary_first_dropout": 0.0, "tie_word_embeddings": false,
          "use_post_norm": true, "vocab_size": 110592})",
      "hyperclovax-seed-think-14b");
  CheckIsPreset(
      R"({"model_type": "youtu", "attention_bias": false, "hidden_act": "silu",
          "hidden_size": 2048, "intermediate_size": 6144,
          "kv_lora_rank": 512, "max_position_embeddings": 131072,
          "mlp_bias": false, "num_attention_heads": 16,
          "num_hidden_layers": 32, "num_key_value_heads": 16,
          "q_lora_rank": 1536, "qk_head_dim": 192, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "rope_interleave": true,
          "rope_parameters": {"rope_theta": 1600000, "rope_type": "default"},
          "tie_word_embeddings": true, "v_head_dim": 128,
          "vocab_size": 128256})",
      "youtu-llm-2b");
}

TEST_CASE("nanochat and Nomic's encoder as published") {
  CheckIsPreset(
      R"({"model_type": "nanochat", "attention_bias": false,
          "attention_dropout": 0.0, "hidden_act": "relu2",
          "hidden_size": 1280, "intermediate_size": 5120,
          "logits_soft_cap": 15.0, "max_position_embeddings": 2048,
          "num_attention_heads": 10, "num_hidden_layers": 20,
          "num_key_value_heads": 10,
          "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
          "tie_word_embeddings": false, "vocab_size": 65536})",
      "nanochat-d20");
  // Its file has the keys of code of its own beside those of the class.
  const auto nomic = [](std::string_view more) {
    return fmt::format(
        R"({{"model_type": "nomic_bert", "activation_function": "swiglu",
             "attn_pdrop": 0.0, "causal": false, "dense_seq_output": true,
             "embd_pdrop": 0.0, "fused_bias_fc": true,
             "layer_norm_epsilon": 1e-12, "max_trained_positions": 2048,
             "mlp_fc1_bias": false, "mlp_fc2_bias": false, "n_embd": 768,
             "n_head": 12, "n_inner": 3072, "n_layer": 12,
             "n_positions": 8192, "prenorm": false, "qkv_proj_bias": false,
             "resid_pdrop": 0.0, "rotary_emb_base": 1000,
             "rotary_emb_fraction": 1.0, "rotary_scaling_factor": null,
             "type_vocab_size": 2, "use_rms_norm": false,
             "vocab_size": 30528{}}})",
        more);
  };
  CheckIsPreset(nomic(R"(, "max_position_embeddings": 2048)"),
                "nomic-embed-text-v1.5");
  CheckIsPreset(nomic(R"(, "hidden_size": 768, "num_hidden_layers": 12,
               "num_attention_heads": 12, "intermediate_size": 3072,
               "hidden_act": "silu", "max_position_embeddings": 2048,
               "hidden_dropout_prob": 0.0)"),
                "nomic-embed-text-v1.5");
  CHECK(OfHub(nomic("")).positions == 8192);
  CHECK(RefusalOf(nomic(R"(, "num_experts": 8)"))
            .ends_with("num_experts: expected 0, got 8; nothing else is "
                       "counted"));
}

// The share of a head that rotates stands in a map there, whose word counts.
TEST_CASE("what Transformers 5 writes into rope_parameters is read") {
  const auto read = [](std::string_view type, std::string_view keys) {
    return OfHub(fmt::format(
        R"({{"model_type": "{}", "num_hidden_layers": 2, "hidden_size": 1024,
             "num_attention_heads": 8, "num_key_value_heads": 4,
             "head_dim": 128, "intermediate_size": 128, "vocab_size": 100,
             "max_position_embeddings": 64{}}})",
        type,
        keys));
  };
  constexpr std::string_view kShare =
      R"(, "rope_parameters": {"partial_rotary_factor": 0.75,
                               "rope_theta": 1e4, "rope_type": "default"})";
  for (const char* type : {"glm", "glm4", "nemotron", "phi3", "stablelm"}) {
    CAPTURE(type);
    CHECK(read(type, kShare).rotary_head_size == 96);
  }
  CHECK(read("phi3", "").rotary_head_size == 0);
  CHECK(read("glm", "").rotary_head_size == 64);
  CHECK(read("glm", R"(, "partial_rotary_factor": 1.0)").rotary_head_size == 0);
  CHECK(RefusalOf(R"({"model_type": "glm", "num_hidden_layers": 2,
      "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8,
      "vocab_size": 8, "max_position_embeddings": 8,
      "rope_parameters": {"partial_rotary_factor": 2}})") ==
        "config.json:4:52: rope_parameters.partial_rotary_factor: expected a "
        "number from 0 to 1, got 2");
}

}  // namespace
}  // namespace trainfare::hardware
