#include "hardware/files/decoder_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/config_json.h"
#include "hardware/files/json_text.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {

using model::Architecture;
using nlohmann::json;

namespace {

int64_t KeyValueHeads(const ConfigJson& c,
                      const Architecture& a,
                      const Architecture& usual) {
  const bool of_class =
      usual.key_value_heads > 0 && !c.IsNull("num_key_value_heads");
  return c.PositiveCount("num_key_value_heads",
                         of_class ? usual.key_value_heads : a.heads);
}

}  // namespace

std::optional<int64_t> CountWords(const ConfigJson& c,
                                  const char* key,
                                  std::string_view word,
                                  int64_t layers) {
  if (!c.Has(key)) return std::nullopt;
  constexpr std::string_view kFull = "full_attention";
  int64_t count = 0;
  int64_t block = 0;
  for (const json& one : c.List(key, layers, "words")) {
    if (one == word) {
      ++count;
    } else if (one != kFull) {
      c.Fail(fmt::format("{}[{}]", key, block),
             fmt::format("expected {}{}, got {}; other blocks are not counted",
                         kFull,
                         word == kFull ? "" : fmt::format(" or {}", word),
                         ShownJson(one)));
    }
    ++block;
  }
  return count;
}

Architecture UsualHeads(int64_t key_value_heads, int64_t head_size) {
  Architecture usual;
  usual.key_value_heads = key_value_heads;
  usual.head_size = head_size;
  return usual;
}

Architecture NextTokenDecoder() {
  Architecture a;
  a.family = model::Family::kDecoder;
  a.embedding_layer_norm = a.pooler = false;
  a.head = model::Head::kCausalLanguageModel;
  return a;
}

Architecture ReadLlama(const ConfigJson& c,
                       bool tied,
                       const Architecture& usual) {
  Architecture a = NextTokenDecoder();
  ReadSizes(c, a, usual);
  a.key_value_heads = KeyValueHeads(c, a, usual);
  a.head_size =
      c.IsNull("head_dim") ? 0 : c.PositiveCount("head_dim", usual.head_size);
  a.separate_projections = true;
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

void ReadWindow(const ConfigJson& c,
                int64_t layers,
                Architecture& a,
                int64_t usual) {
  const auto listed =
      CountWords(c, "layer_types", "sliding_attention", a.layers);
  const int64_t window =
      c.IsNull("sliding_window") ? 0 : c.Count("sliding_window", usual);
  a.windowed_layers = window > 0 ? listed.value_or(layers) : 0;
  a.window = a.windowed_layers > 0 ? std::min(window, a.positions) : 0;
}

bool ClipsProjections(const ConfigJson& c) {
  constexpr const char* kKey = "clip_qkv";
  if (!c.Has(kKey)) return false;
  c.PositiveNumber(kKey, c.At(kKey));
  return true;
}

int64_t UnrotatedLayers(const ConfigJson& c, int64_t layers) {
  constexpr const char* kKey = "no_rope_layers";
  const int64_t of_interval =
      layers / c.PositiveCount("no_rope_layer_interval", 4);
  // Llama 4's files have an empty one where it is as usual.
  if (!c.Has(kKey) || c.At(kKey) == json::array()) return of_interval;
  int64_t unrotated = 0;
  int64_t block = 0;
  for (const json& rotates : c.List(kKey, layers, "numbers")) {
    if (!rotates.is_number_integer() || (rotates != 0 && rotates != 1)) {
      c.Expected(fmt::format("{}[{}]", kKey, block), "0 or 1", rotates);
    }
    if (rotates == 0) ++unrotated;
    ++block;
  }
  return unrotated;
}

int64_t WindowPeriod(const ConfigJson& c, int64_t usual) {
  const char* key = c.Has("_sliding_window_pattern") ? "_sliding_window_pattern"
                                                     : "sliding_window_pattern";
  return c.PositiveCount(key, usual);
}

Architecture ReadQwen(const ConfigJson& c,
                      bool version_3,
                      int64_t key_value_heads) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(key_value_heads));
  c.Expect("use_mrope", false);
  const int64_t full = c.Count("max_window_layers", 28);
  ReadWindow(c, std::max<int64_t>(0, a.layers - full), a, 4096);
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

Architecture ReadGemmas(const ConfigJson& c, const Architecture& usual) {
  Architecture a = ReadLlama(c, /*tied=*/true, usual);
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

bool HasCap(const ConfigJson& c, const char* key) {
  return !c.IsNull(key) && c.Positive(key, /*fallback=*/30.0) > 0;
}

Architecture ReadGranites(const ConfigJson& c,
                          bool tied,
                          const Architecture& usual) {
  Ignore(c,
         {"attention_multiplier",
          "embedding_multiplier",
          "logits_scaling",
          "residual_multiplier"});
  return ReadLlama(c, tied, usual);
}

Architecture ReadHunYuan(const ConfigJson& c) {
  Architecture a = ReadLlama(c);
  a.query_key_norm = model::QueryKeyNorm::kHead;
  // What published files say beside: of code before the class, which has one
  // form of each.
  c.Expect("mlp_bias", false);
  c.Expect("norm_type", "rms");
  c.Expect("use_cla", false);
  c.Expect("use_mla", false);
  c.Expect("use_qk_norm", true);
  c.Expect("use_rotary_pos_emb", true);
  Ignore(c,
         {"add_classification_head",
          "attention_head_dim",
          "cla_share_factor",
          "class_num",
          "dense_list",
          "eod_token_id",
          "im_end_id",
          "im_newline_id",
          "im_start_id",
          "mask_init_id",
          "org_vocab_size",
          "pad_id",
          "pool_type",
          "position_embedding_xdrope",
          "skip_cls_token",
          "text_end_id",
          "text_start_id"});
  return a;
}

int64_t RotarySize(const ConfigJson& c,
                   const Architecture& a,
                   const char* key,
                   double usual) {
  double share = c.Part(key, usual);
  constexpr const char* kMap = "rope_parameters";
  if (c.Has(kMap)) {
    share = c.Within(kMap).Part("partial_rotary_factor", share);
  }
  return share < 1.0 ? RotarySize(a, share) : 0;
}

int64_t RotarySize(const Architecture& a, double share) {
  return static_cast<int64_t>(static_cast<double>(a.query_head_size()) * share);
}

int64_t DenseBlocks(const ConfigJson& c, int64_t layers, int64_t usual) {
  constexpr const char* kKey = "mlp_layer_types";
  if (!c.Has(kKey)) return usual;
  int64_t dense = 0;
  int64_t block = 0;
  for (const json& one : c.List(kKey, layers, "words")) {
    if (one != "dense" && one != "sparse") {
      c.Expected(fmt::format("{}[{}]", kKey, block), "dense or sparse", one);
    }
    if (one == "dense" && dense < block) {
      c.Fail(
          fmt::format("{}[{}]", kKey, block),
          std::string("expected sparse, as before it, got dense; blocks "
                      "without experts are counted where they are the first"));
    }
    if (one == "dense") ++dense;
    ++block;
  }
  return dense;
}

const char* ExpertsKey(const ConfigJson& c) {
  constexpr std::array kKeys = {
      "num_local_experts", "num_experts", "n_routed_experts"};
  const auto first = std::find_if(
      kKeys.begin(), kKeys.end(), [&](const char* key) { return c.Has(key); });
  if (first == kKeys.end()) return kKeys.back();
  // A file that says it twice has to mean one number.
  std::for_each(first, kKeys.end(), [&](const char* key) {
    c.Expect(key, c.At(*first));
  });
  return *first;
}

void ReadExperts(const ConfigJson& c,
                 const ExpertsOfType& usual,
                 Architecture& a) {
  const auto count = [&](const char* key, int64_t of_class) {
    return of_class > 0 ? c.Count(key, of_class) : c.Count(key);
  };
  a.experts = count(ExpertsKey(c), usual.count);
  a.experts_per_token = count("num_experts_per_tok", usual.per_token);
  a.expert_intermediate = c.Count("moe_intermediate_size", usual.intermediate);
  const char* const shared =
      c.Has("num_shared_experts") ? "num_shared_experts" : "n_shared_experts";
  if (!c.IsNull(shared)) {
    a.shared_intermediate =
        c.Count(shared, usual.shared) * a.expert_intermediate;
  }
  a.dense_layers =
      DenseBlocks(c, a.layers, c.Count("first_k_dense_replace", usual.dense));
  c.Expect("moe_layer_freq", 1);
}

int64_t BlocksWithoutBase(const ConfigJson& c, int64_t layers) {
  constexpr const char* kKey = "layer_rope_theta";
  if (!c.Has(kKey)) return 0;
  int64_t without = 0;
  int64_t block = 0;
  for (const json& base : c.List(kKey, layers, "numbers")) {
    if (!base.is_number() || base < 0) {
      c.Expected(fmt::format("{}[{}]", kKey, block), "a number, or 0", base);
    }
    if (base == 0) ++without;
    ++block;
  }
  return without;
}

}  // namespace trainfare::hardware
