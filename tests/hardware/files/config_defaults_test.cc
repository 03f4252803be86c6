// What a config.json says with its type's class alone: files that Transformers
// saved of each (saved_configs.py), whole and with keys left out.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/model_config.h"
#include "model/architecture.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

model::Architecture Described(const std::string& text) {
  return ParseModelConfig(text, "config.json");
}

#include "tests/hardware/files/saved_configs.inc"
#include "tests/hardware/files/saved_configs_5.inc"

using SavedConfigs = std::span<const std::pair<std::string_view, int64_t>>;

TEST_CASE("files as Transformers saves them are read, of every type") {
  for (const SavedConfigs configs :
       {SavedConfigs(kSavedConfigs), SavedConfigs(kSavedConfigsOf5)}) {
    for (const auto& [saved, trains] : configs) {
      const std::string_view text = saved;
      CAPTURE(text);
      CHECK(model::TotalParameters(Described(std::string(text))) == trains);
    }
  }
}

// Both versions save the same model of a type whose class has kept its values:
// that of DeepSeek-V2 has other words now, and mT5's logits are tied.
TEST_CASE("a type's file of Transformers 5 is what the one of 4 is") {
  const auto by_type = [](SavedConfigs configs) {
    std::map<std::string, model::Architecture> read;
    for (const auto& [saved, trains] : configs) {
      const model::Architecture a = Described(std::string(saved));
      read[a.name] = a;
    }
    return read;
  };
  const auto of_4 = by_type(kSavedConfigs);
  const auto of_5 = by_type(kSavedConfigsOf5);
  int same = 0;
  for (const auto& [name, before] : of_4) {
    const std::string& type = name;
    const auto after = of_5.find(type);
    if (after == of_5.end()) continue;
    if (type == "deepseek_v2" || type == "mt5") continue;
    CAPTURE(type);
    model::Architecture now = after->second;
    now.head_size = now.query_head_size();
    model::Architecture then = before;
    then.head_size = then.query_head_size();
    CHECK(now == then);
    ++same;
  }
  CHECK(same == 75);
}

// What the files say is what each class has, but for few keys of which
// saved_configs.py asks for more: without any other key they are the same, or
// a key is said to be missing.
TEST_CASE("a key that a saved file lacks is as its class has it") {
  constexpr auto kOfScript =
      std::to_array<std::pair<std::string_view, std::string_view>>({
          {"afmoe", "attention_bias"},
          {"bamba", "attn_layer_indices"},
          {"gemma3_text", "num_hidden_layers"},
          {"gemma4_text", "attention_k_eq_v"},
          {"gemma4_text", "enable_moe_block"},
          {"gemma4_text", "layer_types"},
          {"gemma4_text", "num_kv_shared_layers"},
          {"gemma4_text", "per_layer_config"},
          {"cohere", "use_qk_norm"},
          {"cohere2_moe", "mlp_layer_types"},
          {"cohere2_moe", "num_key_value_heads"},
          {"cohere2_moe", "num_shared_experts"},
          {"cohere2_moe", "prefix_dense_intermediate_size"},
          {"dots1", "first_k_dense_replace"},
          {"glm4_moe", "use_qk_norm"},
          {"granitemoe_swa", "shared_intermediate_size"},
          {"stablelm", "use_qkv_bias"},
      });
  std::vector<std::string_view> texts;
  std::vector<std::string> types;
  for (const SavedConfigs configs :
       {SavedConfigs(kSavedConfigs), SavedConfigs(kSavedConfigsOf5)}) {
    for (const auto& [saved, trains] : configs) {
      std::string type = nlohmann::json::parse(saved).at("model_type");
      if (std::find(types.begin(), types.end(), type) != types.end()) continue;
      types.push_back(std::move(type));
      texts.push_back(saved);
    }
  }
  for (const std::string_view saved : texts) {
    const auto config = nlohmann::json::parse(saved);
    const std::string type = config.at("model_type");
    model::Architecture whole = Described(config.dump());
    whole.head_size = whole.query_head_size();
    for (const auto& item : config.items()) {
      const std::string& key = item.key();
      const std::pair<std::string_view, std::string_view> place(type, key);
      if (key == "model_type" ||
          std::find(kOfScript.begin(), kOfScript.end(), place) !=
              kOfScript.end()) {
        continue;
      }
      CAPTURE(type);
      CAPTURE(key);
      nlohmann::json less = config;
      less.erase(key);
      try {
        model::Architecture read = Described(less.dump());
        read.head_size = read.query_head_size();
        CHECK(read == whole);
      } catch (const model::InputError& error) {
        CHECK(std::string(error.what()).ends_with(": missing"));
      }
    }
  }
}

// Its class has some of these, too, but those of one model of many.
TEST_CASE("a model's sizes are never those of its class, but Gemma 3's") {
  struct Sizes {
    std::string_view type;
    std::vector<std::string_view> keys;
  };
  const auto without = [](std::string_view type, std::string_view key) {
    for (const auto& [saved, trains] : kSavedConfigs) {
      auto config = nlohmann::json::parse(saved);
      if (config.at("model_type") != type) continue;
      config.erase(std::string(key));
      return config.dump();
    }
    return std::string();
  };
  const std::vector<std::string_view> of_llama = {"num_hidden_layers",
                                                  "hidden_size",
                                                  "num_attention_heads",
                                                  "intermediate_size",
                                                  "vocab_size"};
  for (const auto& [type, keys] :
       {Sizes{"llama", of_llama},
        Sizes{"qwen3", of_llama},
        Sizes{"bert", of_llama},
        Sizes{"gpt2", {"n_layer", "n_embd", "n_head", "vocab_size"}},
        Sizes{"t5", {"num_layers", "d_model", "num_heads", "vocab_size"}}}) {
    for (const std::string_view key : keys) {
      CHECK_THROWS_WITH_AS(
          Described(without(type, key)),
          fmt::format("config.json:1:1: {}: missing", key).c_str(),
          model::InputError);
    }
  }
  CHECK(Described(without("gemma3_text", "hidden_size")).hidden == 2304);
}

// Key and value heads, windows and head sizes that a file leaves out are those
// of its type's class; parameters of Transformers 4.57 on the meta device.
TEST_CASE("what a config.json leaves out is as its class has it") {
  struct Case {
    std::string_view type;
    int64_t parameters;
    int64_t window;
  };
  const std::string sizes =
      R"(, "num_hidden_layers": 2, "hidden_size": 512,
           "num_attention_heads": 32, "intermediate_size": 256,
           "vocab_size": 1000, "max_position_embeddings": 8192)";
  for (const Case& one : {Case{"mistral", 3123712, 4096},
                          Case{"mixtral", 8636928, 0},
                          Case{"gemma", 26466816, 0},
                          Case{"gemma2", 20177408, 4096},
                          Case{"qwen2", 3913216, 0},
                          Case{"qwen3", 18590720, 0},
                          Case{"qwen2_moe", 279488000, 0},
                          Case{"qwen3_moe", 304327232, 0},
                          Case{"gpt_oss", 107333440, 128},
                          Case{"glm", 10735104, 0},
                          Case{"glm4", 10737152, 0},
                          Case{"glm4_moe", 281782784, 0},
                          Case{"ernie4_5", 10213888, 0},
                          Case{"smollm3", 2480640, 0},
                          Case{"starcoder2", 2159232, 0},
                          Case{"seed_oss", 12311040, 0}}) {
    CAPTURE(one.type);
    const model::Architecture a =
        Described(fmt::format(R"({{"model_type": "{}"{}}})", one.type, sizes));
    CHECK(model::TotalParameters(a) == one.parameters);
    CHECK(a.window == one.window);
  }
  // A window of the class, where only its use is said, and in every block of
  // the third's with experts.
  const auto used = [&](std::string_view type) {
    return Described(fmt::format(
        R"({{"model_type": "{}", "use_sliding_window": true,
             "max_window_layers": 1{}}})",
        type,
        sizes));
  };
  CHECK(used("qwen2").window == 4096);
  CHECK(used("qwen2").windowed_layers == 1);
  CHECK(used("qwen3_moe").windowed_layers == 2);
  // Null is another thing: as many as heads, and no window.
  const model::Architecture none =
      Described(R"({"model_type": "mistral", "num_key_value_heads": null,
               "sliding_window": null)" +
                sizes + "}");
  CHECK(model::TotalParameters(none) == 3910144);
  CHECK(none.window == 0);
  // And so it is of latent queries, of shared experts and of caps; a flag's is
  // no.
  const std::string latent =
      R"({"model_type": "deepseek_v2", "num_experts_per_tok": 6)" + sizes;
  CHECK(Described(latent + "}").latent_query == 1536);
  const model::Architecture plain =
      Described(latent + R"(, "q_lora_rank": null, "n_shared_experts": null})");
  CHECK(plain.latent_query == 0);
  CHECK(plain.shared_intermediate == 0);
  CHECK(
      !Described(R"({"model_type": "gemma2", "attn_logit_softcapping": null)" +
                 sizes + "}")
           .attention_soft_cap);
  CHECK(
      Described(R"({"model_type": "starcoder2", "tie_word_embeddings": null)" +
                sizes + "}")
          .untied_output);
  // A window beyond the positions sees them all.
  CHECK(Described(R"({"model_type": "mistral", "num_hidden_layers": 2,
                 "hidden_size": 512, "num_attention_heads": 32,
                 "intermediate_size": 256, "vocab_size": 1000,
                 "max_position_embeddings": 64})")
            .window == 64);
  // Heads that do not divide: GLM-4.5's class drops what is left.
  CHECK(Described(R"({"model_type": "glm4_moe", "num_hidden_layers": 2,
                 "hidden_size": 100, "num_attention_heads": 16,
                 "intermediate_size": 256, "vocab_size": 1000,
                 "max_position_embeddings": 64})")
            .head_size == 6);
}

}  // namespace
}  // namespace trainfare::hardware
