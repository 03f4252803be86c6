// What a config.json is refused for, and by which place of it.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "hardware/files/model_config.h"
#include "hardware/files/model_config_types.h"
#include "model/architecture.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

model::Architecture ReadOf(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

// From the place on.
std::string PlacedRefusal(const std::string& text) {
  try {
    ReadOf(text);
  } catch (const model::InputError& error) {
    const std::string message = error.what();
    return message.substr(message.find(".json"));
  }
  return "nothing refused";
}

// As gemma-3-4b-it; parameters of Transformers' language model.
TEST_CASE("of a model around a language model that one is read") {
  const model::Architecture a = ReadOf(
      R"({"model_type": "gemma3", "mm_tokens_per_image": 256,
          "vision_config": {"model_type": "siglip_vision_model"},
          "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
              "intermediate_size": 10240, "num_hidden_layers": 34,
              "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
              "sliding_window": 1024}})");
  CHECK(model::TotalParameters(a) == 3880263168);
  CHECK(a.name == "gemma3_text (of gemma3, without what is around it)");
  const auto refusal = [](std::string_view inner) {
    return PlacedRefusal(
        fmt::format(R"({{"text_config": {}, "model_type": "gemma3"}})", inner));
  };
  CHECK(refusal("{}") == ".json:1:17: text_config.model_type: missing");
  CHECK(refusal("4") == ".json:1:17: text_config: expected an object, got 4");
  CHECK(refusal(R"({"model_type": "llama5_text"})")
            .starts_with(".json:1:32: text_config.model_type: unknown type "
                         "\"llama5_text\"; did you mean"));
  CHECK(
      refusal(R"({"model_type": "llama", "num_hidden_layers": -1})")
          .starts_with(".json:1:62: text_config.num_hidden_layers: expected "));
  CHECK(refusal(
            R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 8,
                    "num_attention_heads": 2, "intermediate_size": 8,
                    "vocab_size": 9, "max_position_embeddings": 5})") ==
        ".json:1:32: text_config.model_type: expected a language model, got "
        "bert");
  // What the whole says of its embeddings counts, unless the inner one differs.
  const auto tied = [](std::string_view whole, std::string_view inner) {
    return fmt::format(
        R"({{"model_type": "of_images"{}, "text_config": {{
"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8,
"num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 9,
"max_position_embeddings": 5{}}}}})",
        whole,
        inner);
  };
  constexpr std::string_view kTied = R"(, "tie_word_embeddings": true)";
  constexpr std::string_view kUntied = R"(, "tie_word_embeddings": false)";
  CHECK(ReadOf(tied("", "")).untied_output);
  CHECK_FALSE(ReadOf(tied(kTied, "")).untied_output);
  CHECK_FALSE(ReadOf(tied("", kTied)).untied_output);
  CHECK(ReadOf(tied(kUntied, kUntied)).untied_output);
  CHECK(PlacedRefusal(tied(kTied, kUntied)) ==
        ".json:1:52: tie_word_embeddings: expected false as in text_config, "
        "got true");
  CHECK(PlacedRefusal(R"({"model_type": "llama", "vision_config": {}})") ==
        ".json:1:42: vision_config: expected a language model, got one with "
        "images; the text_config of such a file is read alone");
  // A file of no language at all says of what it is.
  CHECK(PlacedRefusal(R"({"model_type": "vit", "image_size": 224})")
            .starts_with(".json:1:16: model_type: unknown type \"vit\", of "
                         "images; "));
  CHECK(PlacedRefusal(R"({"model_type": "whisper", "num_mel_bins": 80})")
            .starts_with(".json:1:16: model_type: unknown type \"whisper\", of "
                         "sound; "));
}

// One key to a line, so that a place is easy to count.
std::string ConfigText(std::string_view type, std::string_view keys) {
  return fmt::format(R"({{"model_type": "{}",
"num_hidden_layers": 4,
"hidden_size": 64,
"num_attention_heads": 4,
"intermediate_size": 128,
"vocab_size": 100,
"max_position_embeddings": 64{}{}}})",
                     type,
                     keys.empty() ? "" : ",\n",
                     keys);
}

TEST_CASE("dimensions that do not go together are named as the file does") {
  struct Case {
    std::string_view type;
    std::string_view keys;
    std::string_view message;
  };
  for (const Case& one :
       {Case{"llama",
             R"("num_key_value_heads": 3)",
             ".json:8:24: num_key_value_heads: expected a divisor of "
             "num_attention_heads = 4, got 3"},
        // Of its class where the file has none.
        Case{"mixtral",
             "",
             ".json:1:1: num_key_value_heads: expected a count of at most 4, "
             "got 8, as usual where it is not said"},
        Case{"mixtral",
             R"("num_local_experts": 2, "num_experts_per_tok": 5,
                "num_key_value_heads": 4)",
             ".json:8:48: num_experts_per_tok: expected a count of at most 2, "
             "got 5"},
        Case{"deepseek_v3",
             "\"num_experts_per_tok\": 2, \"n_routed_experts\": 4,\n"
             "\"moe_intermediate_size\": 8, \"first_k_dense_replace\": 5",
             ".json:9:54: first_k_dense_replace: expected a count of at most "
             "4, got 5"},
        // No one key says so much.
        Case{"deepseek_v3",
             R"("num_experts_per_tok": 2, "n_routed_experts": 4,
                "moe_intermediate_size": 8, "n_shared_experts": 16777216)",
             ".json: shared_intermediate: expected a count of at most "
             "16777216, got 134217728"}}) {
    CAPTURE(one.type);
    CHECK(PlacedRefusal(ConfigText(one.type, one.keys)) == one.message);
  }
  CHECK(PlacedRefusal(R"({"model_type": "llama", "num_hidden_layers": 4,
      "hidden_size": 0, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "max_position_embeddings": 64})") ==
        ".json:2:22: hidden_size: expected a count of at least 1, got 0");
  const std::string gpt2 = R"({"model_type": "gpt2", "n_layer": 2,
      "n_embd": 10, "n_positions": 8, "vocab_size": 9, "n_head": 3})";
  CHECK(PlacedRefusal(gpt2) ==
        ".json:2:66: n_head: expected a divisor of n_embd = 10, got 3");
}

TEST_CASE("positions that rotate in a way that nobody knows are refused") {
  for (const char* kind : {"deepseek_yarn",
                           "default",
                           "dynamic",
                           "linear",
                           "llama3",
                           "longrope",
                           "mrope",
                           "su",
                           "yarn"}) {
    CAPTURE(kind);
    for (const char* key : {"rope_type", "type"}) {
      CHECK(ReadOf(
                ConfigText("llama",
                           fmt::format(
                               R"("rope_scaling": {{"{}": "{}"}})", key, kind)))
                .layers == 4);
    }
  }
  const auto refusal = [](std::string_view keys) {
    return PlacedRefusal(ConfigText("llama", keys));
  };
  CHECK(refusal(R"("rope_scaling": {"factor": 4.0, "type": "weird"})") ==
        ".json:8:41: rope_scaling.type: unknown kind \"weird\"; known: "
        "deepseek_yarn, default, dynamic, linear, llama3, longrope, mrope, "
        "proportional, su, yarn");
  CHECK(refusal(R"("rope_scaling": {"rope_type": "yarm", "type": "yarn"})")
            .starts_with(".json:8:31: rope_scaling.rope_type: unknown kind "
                         "\"yarm\"; did you mean \"yarn\"?"));
  CHECK(refusal(R"("rope_scaling": {"factor": 4.0})") ==
        ".json:8:17: rope_scaling.rope_type: missing");
  CHECK(refusal(R"("rope_scaling": "yarn")") ==
        ".json:8:17: rope_scaling: expected a map, got \"yarn\"");
  CHECK(refusal(R"("rope_scaling": {"type": 4})") ==
        ".json:8:26: rope_scaling.type: expected a text, got 4");
  // As Transformers 5 writes it.
  CHECK(ReadOf(ConfigText("llama", R"("rope_parameters": {"rope_theta": 1e4})"))
            .layers == 4);
  CHECK(refusal(R"("rope_parameters": {"rope_type": "weird"})")
            .starts_with(".json:8:34: rope_parameters.rope_type: unknown"));
  CHECK(
      refusal(
          R"("rope_parameters": {"full_attention": {"rope_type": "weird"}})")
          .starts_with(".json:8:53: rope_parameters.full_attention.rope_type: "
                       "unknown kind"));
}

TEST_CASE("values that no such key has are refused by their place") {
  struct Case {
    std::string_view type;
    std::string_view keys;
    std::string_view message;
  };
  for (const Case& one :
       {Case{"llama",
             R"("num_key_value_heads": 0)",
             "8:24: num_key_value_heads: expected an integer from 1 to "
             "16777216, got 0"},
        Case{"qwen3",
             R"("head_dim": 0)",
             "8:13: head_dim: expected an integer from 1 to 16777216, got 0"},
        Case{"qwen3_moe",
             R"("head_dim": 0)",
             "8:13: head_dim: expected an integer from 1 to 16777216, got 0"},
        Case{"falcon",
             R"("num_kv_heads": 0)",
             "8:17: num_kv_heads: expected an integer from 1 to 16777216, got "
             "0"},
        Case{"phi3",
             R"("partial_rotary_factor": 1e300)",
             "8:26: partial_rotary_factor: expected a number from 0 to 1, got "
             "1e+300"},
        Case{"gpt_neox",
             R"("rotary_pct": -0.25)",
             "8:15: rotary_pct: expected a number from 0 to 1, got -0.25"},
        Case{"gemma3_text",
             R"("head_dim": 16, "layer_types": "sliding_attention")",
             "8:32: layer_types: expected a list of 4 words, one a block, got "
             "\"sliding_attention\""},
        Case{"qwen3_moe",
             R"("mlp_only_layers": [1])",
             "8:20: mlp_only_layers: expected the first blocks: 0, 1 and so "
             "on, got [1]"},
        Case{"qwen3_moe",
             R"("mlp_only_layers": [0, 1, 2, 3, 4])",
             "8:20: mlp_only_layers: expected a count of at most 4, got 5"},
        Case{"qwen3_moe",
             R"("mlp_only_layers": [0, "1"])",
             "8:24: mlp_only_layers[1]: expected a block, got \"1\""},
        Case{"qwen3_moe",
             R"("decoder_sparse_step": 2)",
             "8:24: decoder_sparse_step: expected 1, got 2; nothing else is "
             "counted"},
        Case{
            "gpt_oss",
            R"("layer_types": ["full_attention"], "num_key_value_heads": 4)",
            "8:16: layer_types: expected a list of 4 words, one a block, got a "
            "list of 1"},
        Case{"gemma3_text",
             R"("layer_types": ["sliding_attention", 1, "full", "full"])",
             "8:38: layer_types[1]: expected full_attention or "
             "sliding_attention, got 1; other blocks are not counted"},
        Case{"gemma3_text",
             R"("sliding_window_pattern": 0)",
             "8:27: sliding_window_pattern: expected an integer from 1 to "
             "16777216, got 0"},
        Case{"gemma2",
             R"("attn_logit_softcapping": "50")",
             "8:27: attn_logit_softcapping: expected a number above 0, got "
             "\"50\""},
        Case{"gemma2",
             R"("final_logit_softcapping": false)",
             "8:28: final_logit_softcapping: expected a number above 0, got "
             "false"},
        Case{"smollm3",
             R"("no_rope_layers": {"0": 0})",
             "8:19: no_rope_layers: expected a list of 4 numbers, one a block, "
             "got {\"0\":0}"},
        Case{"smollm3",
             R"("no_rope_layers": [0, 1])",
             "8:19: no_rope_layers: expected a list of 4 numbers, one a block, "
             "got a list of 2"},
        Case{"smollm3",
             R"("no_rope_layers": [0, 1, "0", 1])",
             "8:26: no_rope_layers[2]: expected 0 or 1, got \"0\""},
        Case{"smollm3",
             R"("no_rope_layers": [0, 1, 1, 0.0])",
             "8:29: no_rope_layers[3]: expected 0 or 1, got 0.0"},
        Case{"modernbert",
             R"("global_attn_every_n_layers": 0)",
             "8:31: global_attn_every_n_layers: expected an integer from 1 to "
             "16777216, got 0"},
        Case{"hunyuan_v1_dense",
             R"("use_cla": true)",
             "8:12: use_cla: expected false, got true; nothing else is "
             "counted"},
        Case{"hunyuan_v1_moe",
             R"("num_experts": 4, "moe_topk": [2, 2, 1, 2])",
             "8:31: moe_topk: expected one count for all blocks, got "
             "[2,2,1,2]"},
        Case{"hunyuan_v1_moe",
             R"("num_experts": 4, "num_shared_expert": [2, 2, 2, 2])",
             "8:40: num_shared_expert: expected 1, got [2,2,2,2]"},
        Case{"hunyuan_v1_moe",
             R"("moe_intermediate_size": 64)",
             "8:26: moe_intermediate_size: expected intermediate_size = 128, "
             "got 64"},
        Case{"qwen3_5_text",
             R"("layer_types": ["linear_attention", "mamba", "full_attention",
                                "full_attention"])",
             "8:37: layer_types[1]: expected full_attention or "
             "linear_attention, got \"mamba\"; other blocks are not counted"},
        Case{"qwen3_5_text",
             R"("linear_num_value_heads": 24)",
             "8:27: linear_num_value_heads: expected a multiple of "
             "linear_num_key_heads = 16, got 24"},
        Case{"qwen3_5_text",
             R"("attn_output_gate": false)",
             "8:21: attn_output_gate: expected true, got false; nothing else "
             "is counted"},
        Case{"qwen3_5_text",
             R"("full_attention_interval": 0)",
             "8:28: full_attention_interval: expected an integer from 1 to "
             "16777216, got 0"},
        Case{"qwen3_next",
             R"("mlp_only_layers": [0])",
             "8:20: mlp_only_layers: expected [], got [0]; nothing else is "
             "counted"},
        Case{"granitemoehybrid",
             R"("layer_types": ["attention", "rwkv", "mamba", "mamba"])",
             "8:30: layer_types[1]: expected attention or mamba, got "
             "\"rwkv\""},
        Case{"granitemoehybrid",
             R"("layer_types": ["attention", "mamba", "mamba", "mamba"],
                "mamba_n_heads": 3)",
             "9:34: mamba_n_heads: expected heads that are 128 wide together, "
             "got 3"},
        Case{
            "bamba",
            R"("attn_layer_indices": [4])",
            "8:24: attn_layer_indices[0]: expected a block from 0 to 3, got 4"},
        Case{"nemotron_h",
             R"("hybrid_override_pattern": "M-M")",
             "8:28: hybrid_override_pattern: expected 4 blocks, got 3"},
        Case{"nemotron_h",
             R"("hybrid_override_pattern": "M-MG")",
             "8:28: hybrid_override_pattern[3]: expected M, *, - or E, got "
             "\"G\"; other blocks are not counted"},
        Case{"nemotron_h",
             R"("hybrid_override_pattern": "M-ME", "n_routed_experts": 4)",
             "8:28: hybrid_override_pattern: expected feed-forwards all with "
             "experts or all without"},
        Case{
            "nemotron_h",
            R"("residual_in_fp32": true)",
            "8:21: residual_in_fp32: expected false, got true; nothing else is "
            "counted"},
        Case{"nemotron_h",
             R"("hybrid_override_pattern": "ME*M", "n_routed_experts": 4,
                "num_nextn_predict_layers": 1,
                "mtp_hybrid_override_pattern": "ME")",
             "10:48: mtp_hybrid_override_pattern: expected attention and "
             "experts; other blocks that predict tokens further are not "
             "counted"},
        Case{"nemotron_h",
             R"("hybrid_override_pattern": "ME*M", "n_routed_experts": 4,
                "mlp_bias": true)",
             "9:29: mlp_bias: expected false, got true; nothing else is "
             "counted"},
        Case{"granitemoehybrid", "", "1:1: layer_types: missing"},
        Case{"ernie4_5_moe",
             R"("moe_layer_interval": 2)",
             "8:23: moe_layer_interval: expected 1, got 2; nothing else is "
             "counted"},
        Case{"ernie4_5_moe",
             R"("moe_layer_end_index": 2)",
             "8:24: moe_layer_end_index: expected 3, got 2; nothing else is "
             "counted"},
        Case{"ernie4_5_moe",
             R"("moe_layer_start_index": 5, "num_key_value_heads": 4)",
             "8:26: moe_layer_start_index: expected a count of at most 4, got "
             "5"},
        Case{"llama4_text",
             R"("moe_layers": [0, 2])",
             "8:15: moe_layers: expected the last of every so many of 4 "
             "blocks, got [0,2]"},
        Case{"llama4_text",
             R"("moe_layers": [1, 3, 5])",
             "8:15: moe_layers: expected the last of every so many of 4 "
             "blocks, got [1,3,5]"},
        Case{"llama4_text",
             R"("moe_layers": "all")",
             "8:15: moe_layers: expected the last of every so many of 4 "
             "blocks, got \"all\""},
        Case{"llama4_text",
             R"("interleave_moe_layer_step": 0)",
             "8:30: interleave_moe_layer_step: expected an integer from 1 to "
             "16777216, got 0"},
        Case{"llama4_text",
             R"("attention_chunk_size": null)",
             "8:25: attention_chunk_size: missing"},
        Case{"llama4_text",
             R"("no_rope_layers": [1, 2, 1, 0])",
             "8:23: no_rope_layers[1]: expected 0 or 1, got 2"},
        Case{"llama4_text",
             R"("layer_types": ["chunked_attention", "sliding_attention",
                "full_attention", "full_attention"])",
             "8:38: layer_types[1]: expected full_attention or "
             "chunked_attention, got \"sliding_attention\"; other blocks are "
             "not counted"},
        Case{"olmoe",
             R"("clip_qkv": "8")",
             "8:13: clip_qkv: expected a number above 0, got \"8\""},
        Case{"phimoe",
             R"("hidden_dropout": 0.1)",
             "8:19: hidden_dropout: expected 0 as attention_dropout, got 0.1; "
             "one share is counted for both"},
        Case{"flex_olmo",
             R"("clip_qkv": 8.0)",
             "8:13: clip_qkv: not understood for model_type flex_olmo; it may "
             "change what a step computes"},
        Case{"vaultgemma",
             R"("sliding_window_size": 16)",
             "8:24: sliding_window_size: not understood for model_type "
             "vaultgemma; it may change what a step computes; did you mean "
             "\"sliding_window\"?"},
        Case{"llama",
             R"("mlp_bais": true)",
             "8:13: mlp_bais: not understood for model_type llama; it may "
             "change what a step computes; did you mean \"mlp_bias\"?"},
        Case{"llama",
             R"("mystery": 4)",
             "8:12: mystery: not understood for model_type llama; it may "
             "change what a step computes"},
        Case{"llama",
             R"("hidden_act": "tanhh")",
             "8:15: hidden_act: expected silu, gelu, gelu_pytorch_tanh, "
             "gelu_new, relu, relu2 or xielu, got tanhh"}}) {
    CAPTURE(one.keys);
    CHECK(PlacedRefusal(ConfigText(one.type, one.keys)) ==
          fmt::format(".json:{}", one.message));
  }
  // Code of one's own says how it is computed where the type is one's own, too.
  CHECK(PlacedRefusal(R"({"model_type": "lama", "auto_map": {"A": "b.C"}})")
            .starts_with(".json:1:16: model_type: unknown type \"lama\", of "
                         "code of its own (auto_map); did you mean"));
  CHECK(ReadOf(ConfigText("llama", R"("auto_map": {"A": "b.C"})")).layers == 4);
  // Also before they are divided by: a head of this one has a rotary size.
  CHECK(PlacedRefusal(R"({"model_type": "gpt_neox", "num_hidden_layers": 2,
                          "hidden_size": 8, "num_attention_heads": 0})") ==
        ".json:2:68: num_attention_heads: expected an integer from 1 to "
        "16777216, got 0");
  CHECK(PlacedRefusal(R"({"model_type": "opt", "num_hidden_layers": 2,
      "hidden_size": 8, "num_attention_heads": 2, "ffn_dim": 8,
      "vocab_size": 10, "max_position_embeddings": 0})") ==
        ".json:3:52: max_position_embeddings: expected an integer from 1 to "
        "16777216, got 0");
}

// Beside each, a word of what its blocks have and the nearest type that is
// read.
TEST_CASE("types whose blocks no description holds are refused for them") {
  struct Case {
    std::string_view type;
    std::string_view what;
    std::string_view nearest;
  };
  for (const Case& one :
       {Case{"apertus1p5_text", "logits of fewer words", "apertus"},
        Case{"bailing_moe_linear", "lightning attention", "bailing_moe"},
        Case{"bitnet", "norms within attention", "llama"},
        Case{"deberta-v2", "disentangled attention", "roberta"},
        Case{"deepseek_v32", "indexer", "deepseek_v3"},
        Case{"deepseek_v4", "hyper-connections", "deepseek_v3"},
        Case{"eurobert", "one matrix of their own", "modernbert"},
        Case{"falcon_h1", "side by side", "granitemoehybrid"},
        Case{"gemma3n_text", "streams of its residual", "gemma4_text"},
        Case{"glm_moe_dsa", "indexer", "glm4_moe_lite"},
        Case{"jamba", "the first Mamba", "granitemoehybrid"},
        Case{"kimi_linear", "Kimi Delta Attention", "kimi_k2"},
        Case{"laguna", "a gate a head", "afmoe"},
        Case{"longcat_flash", "two of attention", "deepseek_v3"},
        Case{"minimax", "lightning attention", "minimax_m2"},
        Case{"modernbert-decoder", "before its words", "modernbert"},
        Case{"mpnet", "relative positions", "bert"},
        Case{"xlnet", "two streams", "bert"}}) {
    CAPTURE(one.type);
    const std::string refusal =
        PlacedRefusal(fmt::format(R"({{"model_type": "{}"}})", one.type));
    CHECK(refusal.starts_with(fmt::format(
        ".json:1:16: model_type: type \"{}\" is not counted, for its ",
        one.type)));
    CHECK(refusal.find(one.what) != std::string::npos);
    CHECK(refusal.ends_with(
        fmt::format("; the nearest that is: \"{}\"", one.nearest)));
  }
  CHECK(PlacedRefusal(R"({"model_type": "rwkv"})") ==
        ".json:1:16: model_type: type \"rwkv\" is not counted, for its "
        "recurrences in place of attention");
  // Of a model around it, too.
  CHECK(PlacedRefusal(R"({"model_type": "gemma3n",
      "text_config": {"model_type": "gemma3n_text"}})")
            .starts_with(".json:2:37: text_config.model_type: type "
                         "\"gemma3n_text\" is not counted, for its streams"));
}

// A row of the table that a reader came for, or whose nearest is none, would
// never be said, or mislead.
TEST_CASE("what is not counted is no type that is, and names one that is") {
  const auto is_read = [](std::string_view type) {
    const std::string refusal =
        PlacedRefusal(fmt::format(R"({{"model_type": "{}"}})", type));
    return refusal.find(": model_type: ") == std::string::npos;
  };
  CHECK(is_read("llama"));
  CHECK_FALSE(is_read("lama"));
  CHECK(UncountedTypes().size() > 30);
  for (const UncountedType& one : UncountedTypes()) {
    CAPTURE(one.type);
    CHECK_FALSE(is_read(one.type));
    CHECK((one.nearest.empty() || is_read(one.nearest)));
  }
}

}  // namespace
}  // namespace trainfare::hardware
