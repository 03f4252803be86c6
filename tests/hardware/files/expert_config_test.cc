// Decoders with experts as they are published: the same as their presets, whose
// parameters are those of Transformers.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "hardware/files/model_config.h"
#include "model/architecture.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

model::Architecture OfFile(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

void CheckPreset(const std::string& text, std::string_view preset) {
  model::Architecture read = OfFile(text);
  const model::Architecture& known = model::FindArchitecture(preset);
  read.name = known.name;
  CHECK(read == known);
}

// Keys of both of Llama 4's language models.
std::string Llama4Text(std::string_view more) {
  return fmt::format(
      R"({{"model_type": "llama4_text", "attention_bias": false,
           "attention_chunk_size": 8192, "attention_dropout": 0.0,
           "attn_scale": 0.1, "floor_scale": 8192, "head_dim": 128,
           "for_llm_compressor": false, "hidden_act": "silu",
           "hidden_size": 5120, "intermediate_size": 8192,
           "intermediate_size_mlp": 16384, "num_attention_heads": 40,
           "num_experts_per_tok": 1, "num_hidden_layers": 48,
           "num_key_value_heads": 8, "router_jitter_noise": 0.0,
           "rope_scaling": {{"factor": 8.0, "rope_type": "llama3",
               "original_max_position_embeddings": 8192}},
           "vocab_size": 202048, {}}})",
      more);
}

std::string AroundText(std::string_view text) {
  return fmt::format(
      R"({{"model_type": "llama4", "boi_token_index": 200080,
           "tie_word_embeddings": false, "text_config": {},
           "vision_config": {{"model_type": "llama4_vision_model"}}}})",
      text);
}

}  // namespace

TEST_CASE("Llama 4 as published, of which the language model is read") {
  const std::string scout = Llama4Text(
      R"("attn_temperature_tuning": 4, "interleave_moe_layer_step": 1,
         "max_position_embeddings": 10485760, "no_rope_layers": [],
         "num_local_experts": 16, "use_qk_norm": true)");
  CheckPreset(AroundText(scout), "llama-4-scout-17b-16e");
  CHECK(OfFile(AroundText(scout)).name ==
        "llama4_text (of llama4, without what is around it)");
  std::string listed = "[1";
  for (int block = 3; block < 48; block += 2) {
    listed += fmt::format(", {}", block);
  }
  for (const std::string& interleaved :
       {std::string(R"("interleave_moe_layer_step": 2)"),
        fmt::format(R"("moe_layers": {}])", listed)}) {
    CAPTURE(interleaved);
    CheckPreset(Llama4Text(interleaved +
                           R"(, "max_position_embeddings": 1048576,
                      "num_local_experts": 128, "use_qk_norm": false)"),
                "llama-4-maverick-17b-128e");
  }
}

// Blocks with chunks are those that rotate, or as the file lists them; a chunk
// beyond the positions is all of them.
TEST_CASE("chunks and positions of Llama 4's blocks") {
  const auto read = [](std::string_view keys) {
    return OfFile(fmt::format(
        R"({{"model_type": "llama4_text", "num_hidden_layers": 4,
             "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100,
             "intermediate_size": 128, "max_position_embeddings": 4096{}}})",
        keys));
  };
  CHECK(read("").window == 4096);
  CHECK(read("").windowed_layers == 3);
  CHECK(read("").chunked_window);
  CHECK(read("").intermediate == 16384);
  CHECK(read(R"(, "attention_chunk_size": 32)").window == 32);
  const model::Architecture alternating =
      read(R"(, "no_rope_layers": [1, 0, 1, 0])");
  CHECK(alternating.windowed_layers == 2);
  CHECK(alternating.unrotated_layers == 2);
  const model::Architecture interval = read(R"(, "no_rope_layer_interval": 2)");
  CHECK(interval.unrotated_layers == 2);
  const model::Architecture full = read(
      R"(, "layer_types": ["full_attention", "full_attention",
            "full_attention", "full_attention"])");
  CHECK(full.windowed_layers == 0);
  CHECK(full.window == 0);
  CHECK_FALSE(full.chunked_window);
  CHECK(full.unrotated_layers == 1);
}

TEST_CASE("DBRX as published") {
  CheckPreset(
      R"({"model_type": "dbrx", "d_model": 6144, "emb_pdrop": 0.0,
          "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "",
              "rope_theta": 500000},
          "ffn_config": {"ffn_hidden_size": 10752, "model_type": "",
              "moe_jitter_eps": 0, "moe_loss_weight": 0.05,
              "moe_num_experts": 16, "moe_top_k": 4},
          "initializer_range": 0.02, "max_seq_len": 32768, "n_heads": 48,
          "n_layers": 40, "output_router_logits": false, "resid_pdrop": 0.0,
          "router_aux_loss_coef": 0.05, "tie_word_embeddings": false,
          "vocab_size": 100352})",
      "dbrx");
}

TEST_CASE("Phi-3.5-MoE as published") {
  CheckPreset(
      R"({"model_type": "phimoe", "attention_bias": true,
          "attention_dropout": 0.0, "hidden_act": "silu",
          "hidden_dropout": 0.0, "hidden_size": 4096,
          "input_jitter_noise": 0.01, "intermediate_size": 6400,
          "lm_head_bias": true, "max_position_embeddings": 131072,
          "num_attention_heads": 32, "num_experts_per_tok": 2,
          "num_hidden_layers": 32, "num_key_value_heads": 8,
          "num_local_experts": 16, "original_max_position_embeddings": 4096,
          "rms_norm_eps": 1e-05, "router_jitter_noise": 0.01,
          "rope_scaling": {"short_mscale": 1.24, "long_mscale": 1.24,
              "type": "longrope"},
          "sliding_window": null, "tie_word_embeddings": false,
          "vocab_size": 32064})",
      "phi-3.5-moe");
}

TEST_CASE("clipping where a file asks for it") {
  const auto read = [](std::string_view type, std::string_view keys) {
    return OfFile(fmt::format(
        R"({{"model_type": "{}", "num_hidden_layers": 2, "hidden_size": 64,
             "num_attention_heads": 8, "intermediate_size": 128,
             "vocab_size": 100, "max_position_embeddings": 64{}}})",
        type,
        keys));
  };
  for (const char* type : {"olmo", "olmoe"}) {
    CAPTURE(type);
    CHECK(read(type, R"(, "clip_qkv": 8.0)").clipped_projections);
    CHECK_FALSE(read(type, R"(, "clip_qkv": null)").clipped_projections);
    CHECK_FALSE(read(type, "").clipped_projections);
  }
  CHECK(OfFile(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4,
                   "n_layers": 2, "vocab_size": 100,
                   "attn_config": {"clip_qkv": 6}})")
            .clipped_projections);
}

}  // namespace trainfare::hardware
