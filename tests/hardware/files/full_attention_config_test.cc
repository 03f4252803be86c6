// Files of models whose blocks that see all have attention of another shape, as
// they are published.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/model_config.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

model::Architecture OfFullFile(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

void CheckIsFullPreset(const std::string& text, std::string_view preset) {
  CAPTURE(preset);
  model::Architecture read = OfFullFile(text);
  const model::Architecture& known = model::FindArchitecture(preset);
  read.name = known.name;
  CHECK(read == known);
}

std::string FullRefusal(const std::string& text) {
  try {
    OfFullFile(text);
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "nothing refused";
}

// The last of every so many blocks sees all.
std::string LayerTypes(int blocks, int period = 6) {
  std::vector<std::string> words;
  for (int block = 0; block < blocks; ++block) {
    words.emplace_back(block % period == period - 1 ? "\"full_attention\""
                                                    : "\"sliding_attention\"");
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

// With what all of them say; `sizes` begins with the blocks.
std::string Gemma4File(int blocks,
                       std::string_view sizes,
                       std::string_view type = "gemma4_text") {
  return fmt::format(
      R"({{"model_type": "gemma4", "vision_config": {{"hidden_size": 1152}},
 "tie_word_embeddings": true, "text_config": {{
 "attention_bias": false, "attention_dropout": 0.0, "attention_k_eq_v": true,
 "final_logit_softcapping": 30.0, "global_head_dim": 512, "head_dim": 256,
 "hidden_activation": "gelu_pytorch_tanh", "hidden_size_per_layer_input": 0,
 "layer_types": {}, "max_position_embeddings": 262144, "model_type": "{}",
 "num_hidden_layers": {}, "num_kv_shared_layers": 0,
 "rope_parameters": {{
   "full_attention": {{"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                       "rope_type": "proportional"}},
   "sliding_attention": {{"rope_theta": 10000.0, "rope_type": "default"}}}},
 "sliding_window": 1024, "tie_word_embeddings": true,
 "use_bidirectional_attention": "vision", "use_double_wide_mlp": false,
 "vocab_size": 262144, "vocab_size_per_layer_input": 262144, {}}}}})",
      LayerTypes(blocks),
      type,
      blocks,
      sizes);
}

constexpr std::string_view kSizesOf31b =
    R"("enable_moe_block": false, "hidden_size": 5376,
 "intermediate_size": 21504, "moe_intermediate_size": null,
 "num_attention_heads": 32, "num_experts": null,
 "num_global_key_value_heads": 4, "num_key_value_heads": 16,
 "top_k_experts": null)";

}  // namespace

TEST_CASE("Gemma 4 as published") {
  CheckIsFullPreset(Gemma4File(60, kSizesOf31b), "gemma-4-31b");
  CheckIsFullPreset(Gemma4File(48,
                               R"("enable_moe_block": false,
 "hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16,
 "num_global_key_value_heads": 1, "num_key_value_heads": 8)",
                               "gemma4_unified_text"),
                    "gemma-4-12b");
  CheckIsFullPreset(Gemma4File(30,
                               R"("enable_moe_block": true,
 "hidden_size": 2816, "intermediate_size": 2112, "moe_intermediate_size": 704,
 "num_attention_heads": 16, "num_experts": 128,
 "num_global_key_value_heads": 2, "num_key_value_heads": 8,
 "top_k_experts": 8)"),
                    "gemma-4-26b-a4b");
}

// Its class has other keys in blocks that see all only where these are values.
TEST_CASE("Gemma 4's blocks that see all as its class reads them") {
  constexpr std::string_view kSmall =
      R"({{"model_type": "gemma4_text", "num_hidden_layers": 6,
          "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16,
          "num_key_value_heads": 2, "intermediate_size": 128,
          "vocab_size": 100, "max_position_embeddings": 64,
          "hidden_size_per_layer_input": 0, {}}})";
  const auto read = [&](std::string_view more) {
    return OfFullFile(fmt::format(fmt::runtime(kSmall), more));
  };
  const model::Architecture plain =
      read(R"("num_global_key_value_heads": 1, "sliding_window": 8)");
  CHECK(plain.windowed_layers == 5);
  CHECK(plain.full_head_size == 512);
  CHECK(plain.full_key_value_heads == 0);
  CHECK_FALSE(plain.keys_are_values);
  CHECK(read(R"("num_global_key_value_heads": 1, "attention_k_eq_v": true)")
            .full_key_value_heads == 1);
  // As Transformers 5 saves it.
  const model::Architecture saved = read(
      R"("per_layer_config": {"5": {"head_dim": 32, "num_key_value_heads": 4}})");
  CHECK(saved.full_head_size == 32);
  CHECK(saved.full_key_value_heads == 4);
  const auto refusal = [&](std::string_view more) {
    const std::string text =
        FullRefusal(fmt::format(fmt::runtime(kSmall), more));
    return text.substr(text.find(": ") + 2);
  };
  CHECK(refusal(R"("per_layer_config": {"4": {}, "5": {}})")
            .starts_with("per_layer_config: expected a map of the 1 blocks of "
                         "full_attention, got "));
  CHECK(refusal(R"("per_layer_config": {"5": {"sliding_window": 4}})")
            .starts_with("per_layer_config.5.sliding_window: expected head_dim "
                         "and num_key_value_heads alone"));
  CHECK(refusal(R"("use_bidirectional_attention": "all")")
            .starts_with("use_bidirectional_attention: expected null or "
                         "vision, got \"all\""));
  CHECK(
      refusal(R"("num_kv_shared_layers": 2)")
          .starts_with("num_kv_shared_layers: expected blocks of both sorts "
                       "of attention below the 2 that share keys and values"));
  CHECK(refusal(R"("num_kv_shared_layers": 2, "layer_types": [
           "full_attention", "sliding_attention", "sliding_attention",
           "sliding_attention", "full_attention", "full_attention"])")
            .starts_with("layer_types: expected 2 of full_attention among the "
                         "first 4, as spread evenly, got 1"));
  CHECK(refusal(R"("layer_types": ["sliding_attention", "sliding_attention",
           "full_attention", "sliding_attention", "sliding_attention",
           "sliding_attention"])")
            .starts_with("layer_types[5]: expected full_attention in the last "
                         "block, got \"sliding_attention\""));
  CHECK(refusal(R"("num_global_key_value_heads": 3, "attention_k_eq_v": true)")
            .starts_with("num_global_key_value_heads: expected a divisor of "
                         "num_attention_heads = 4, got 3"));
}

TEST_CASE("Gemma 4 E2B and E4B as published") {
  const auto file = [](int period, std::string_view sizes) {
    const int blocks = period == 5 ? 35 : 42;
    return fmt::format(
        R"({{"model_type": "gemma4", "audio_config": {{"hidden_size": 1024}},
 "vision_config": {{"hidden_size": 768}}, "text_config": {{
 "attention_bias": false, "attention_dropout": 0.0, "attention_k_eq_v": false,
 "enable_moe_block": false, "final_logit_softcapping": 30.0,
 "global_head_dim": 512, "head_dim": 256,
 "hidden_activation": "gelu_pytorch_tanh", "hidden_size_per_layer_input": 256,
 "layer_types": {}, "max_position_embeddings": 131072,
 "model_type": "gemma4_text", "num_attention_heads": 8,
 "num_global_key_value_heads": null, "num_hidden_layers": {},
 "sliding_window": 512, "tie_word_embeddings": true,
 "use_bidirectional_attention": null, "vocab_size": 262144,
 "vocab_size_per_layer_input": 262144, {}}}}})",
        LayerTypes(blocks, period),
        blocks,
        sizes);
  };
  CheckIsFullPreset(file(5,
                         R"("hidden_size": 1536, "intermediate_size": 6144,
 "num_key_value_heads": 1, "num_kv_shared_layers": 20,
 "use_double_wide_mlp": true)"),
                    "gemma-4-e2b");
  CheckIsFullPreset(file(6,
                         R"("hidden_size": 2560, "intermediate_size": 10240,
 "num_key_value_heads": 2, "num_kv_shared_layers": 18,
 "use_double_wide_mlp": false)"),
                    "gemma-4-e4b");
}

TEST_CASE("rows of embeddings of blocks are those of the file") {
  const model::Architecture a = OfFullFile(
      R"({"model_type": "gemma4_text", "num_hidden_layers": 6,
          "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16,
          "num_key_value_heads": 2, "intermediate_size": 128,
          "vocab_size": 100, "max_position_embeddings": 64,
          "vocab_size_per_layer_input": 90})");
  CHECK(a.layer_embedding_size == 256);
  CHECK(a.layer_vocabulary == 90);
  CHECK(a.shared_key_value_layers == 0);
}

TEST_CASE("MiMo-V2-Flash as published") {
  std::vector<int> windows;
  std::vector<int> sparse;
  for (int block = 0; block < 48; ++block) {
    windows.push_back(block == 0 || block % 6 == 5 ? 0 : 1);
    sparse.push_back(block == 0 ? 0 : 1);
  }
  const auto file = [&](int swa_keys) {
    return fmt::format(
        R"({{"model_type": "mimo_v2_flash", "attention_bias": false,
 "attention_chunk_size": 128, "attention_dropout": 0.0,
 "attention_value_scale": 0.707, "add_full_attention_sink_bias": false,
 "add_swa_attention_sink_bias": true, "head_dim": 192, "hidden_act": "silu",
 "hidden_size": 4096, "hybrid_layer_pattern": [{}],
 "intermediate_size": 16384, "layernorm_epsilon": 1e-05,
 "max_position_embeddings": 262144, "moe_intermediate_size": 2048,
 "moe_layer_freq": [{}], "n_group": 1, "n_routed_experts": 256,
 "n_shared_experts": null, "norm_topk_prob": true, "num_attention_heads": 64,
 "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
 "partial_rotary_factor": 0.334, "rope_theta": 5000000,
 "routed_scaling_factor": null, "scoring_func": "sigmoid",
 "sliding_window": 128, "sliding_window_size": 128, "swa_head_dim": 192,
 "swa_num_attention_heads": 64, "swa_num_key_value_heads": {},
 "swa_rope_theta": 10000, "swa_v_head_dim": 128,
 "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
 "v_head_dim": 128, "vocab_size": 152576}})",
        fmt::join(windows, ", "),
        fmt::join(sparse, ", "),
        swa_keys);
  };
  CheckIsFullPreset(file(8), "mimo-v2-flash");
  CHECK(FullRefusal(file(4)).find("swa_num_key_value_heads: expected 8, got "
                                  "4; nothing else is counted") !=
        std::string::npos);
}

}  // namespace trainfare::hardware
