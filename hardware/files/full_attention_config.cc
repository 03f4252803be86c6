// Decoders whose blocks that see all have attention of another shape than those
// with a window.

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
#include "model/rounding.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// Heads of the blocks that see all, and those of them that are keys'.
struct FullHeads {
  int64_t size = 0;
  int64_t keys = 0;
};

// Of such a block's map of a number that stands in it, or as with a window.
int64_t OfBlock(const ConfigJson& c,
                const std::string& path,
                const json& block,
                const char* key,
                int64_t otherwise) {
  const auto found = block.find(key);
  if (found == block.end()) return otherwise;
  if (!found->is_number_integer() || *found < 1) {
    c.Expected(
        fmt::format("{}.{}", path, key), "a count of at least 1", *found);
  }
  return found->get<int64_t>();
}

// As Transformers saves it: a map from the number of each such block to what it
// has of its own, which has to be the same in all.
FullHeads HeadsOfBlocks(const ConfigJson& c, const Architecture& a) {
  constexpr const char* kBlocks = "per_layer_config";
  const json& blocks = c.At(kBlocks);
  const int64_t full = a.layers - a.windowed_layers;
  if (!blocks.is_object() || static_cast<int64_t>(blocks.size()) != full) {
    c.Expected(kBlocks,
               fmt::format("a map of the {} blocks of full_attention", full),
               blocks);
  }
  for (const auto& item : blocks.items()) {
    const std::string path = fmt::format("{}.{}", kBlocks, item.key());
    const json& block = item.value();
    if (!block.is_object() || block != *blocks.begin()) {
      c.Expected(path, "the same map in each block", block);
    }
    for (const auto& own : block.items()) {
      if (own.key() == "head_dim" || own.key() == "num_key_value_heads") {
        continue;
      }
      c.Fail(fmt::format("{}.{}", path, own.key()),
             std::string("expected head_dim and num_key_value_heads alone; "
                         "nothing else is counted"));
    }
  }
  const std::string path = fmt::format("{}.{}", kBlocks, blocks.begin().key());
  const json& block = *blocks.begin();
  return {OfBlock(c, path, block, "head_dim", a.head_size),
          OfBlock(c, path, block, "num_key_value_heads", a.key_heads())};
}

// Where nothing of the kind is said heads are of 512, and as many keys' as with
// a window; others only where keys are values (Gemma4TextConfig).
FullHeads HeadsOfFile(const ConfigJson& c, const Architecture& a) {
  FullHeads heads{c.PositiveCount("global_head_dim", 512), a.key_heads()};
  constexpr const char* kKeys = "num_global_key_value_heads";
  if (a.keys_are_values && c.Has(kKeys)) heads.keys = c.PositiveCount(kKeys);
  return heads;
}

void SetFullHeads(const FullHeads& heads, Architecture& a) {
  if (a.windowed_layers == 0) {
    a.head_size = heads.size;
    a.key_value_heads = heads.keys;
    return;
  }
  if (a.windowed_layers == a.layers) return;
  a.full_head_size = heads.size == a.head_size ? 0 : heads.size;
  a.full_key_value_heads = heads.keys == a.key_heads() ? 0 : heads.keys;
}

// Experts beside those that every token has.
void ReadExpertsOfGemma4(const ConfigJson& c, Architecture& a) {
  Ignore(c, {"moe_intermediate_size", "num_experts", "top_k_experts"});
  if (!c.Flag("enable_moe_block", false)) return;
  a.experts = c.Count("num_experts");
  a.experts_per_token = c.Count("top_k_experts");
  a.expert_intermediate = c.Count("moe_intermediate_size");
  a.shared_intermediate = a.intermediate;
  a.expert_norms = true;
}

// The small ones (Gemma 4 E2B and E4B) have embeddings of each block, and blocks
// that share keys and values.
void ReadSmallGemma4(const ConfigJson& c, int64_t usual_size, Architecture& a) {
  a.layer_embedding_size = c.Count("hidden_size_per_layer_input", usual_size);
  const int64_t rows = c.Count("vocab_size_per_layer_input", 262'144);
  if (a.layer_embedding_size > 0 && rows != a.vocabulary) {
    a.layer_vocabulary = rows;
  }
  a.shared_key_value_layers = c.Count("num_kv_shared_layers", 0);
  const bool wide = c.Flag("use_double_wide_mlp", false);
  if (wide && a.shared_key_value_layers > 0) {
    a.upper_intermediate = 2 * a.intermediate;
  }
}

// Blocks that see all are counted as spread evenly: where the highest ones share
// keys and values it matters how many of them are among these.
void RequireEvenlyShared(const ConfigJson& c, const Architecture& a) {
  constexpr const char* kTypes = "layer_types";
  const int64_t below = a.layers - a.shared_key_value_layers;
  if (!c.Has(kTypes) || !a.attention_differs() || below == a.layers ||
      below <= 0) {
    return;
  }
  int64_t full = 0;
  int64_t block = 0;
  for (const json& word : c.List(kTypes, a.layers, "words")) {
    if (block++ < below && word == "full_attention") ++full;
  }
  const int64_t even = a.full_layers_below(below);
  if (full == even) return;
  c.Fail(kTypes,
         fmt::format("expected {} of full_attention among the first {}, as "
                     "spread evenly, got {}; with num_kv_shared_layers "
                     "nothing else is counted",
                     even,
                     below,
                     full));
}

// The last block sees all, whatever the file says (Gemma4TextConfig).
void RequireLastFull(const ConfigJson& c, const Architecture& a) {
  constexpr const char* kTypes = "layer_types";
  if (!c.Has(kTypes) || a.layers == 0) return;
  const json& last = c.List(kTypes, a.layers, "words").back();
  if (last == "full_attention") return;
  c.Expected(fmt::format("{}[{}]", kTypes, a.layers - 1),
             "full_attention in the last block",
             last);
}

// Gemma Team 2026, "Gemma 4". Scores are as they are, values have a norm, too,
// and each block's result is times a number, in a pass that is not counted.
Architecture ReadGemma4s(const ConfigJson& c, bool unified) {
  Architecture a = ReadGemmas(c, UsualHeads(4, 256));
  ReadSmallGemma4(c, unified ? 0 : 256, a);
  RequireLastFull(c, a);
  // Of six blocks the last, and the last of all.
  ReadWindow(
      c, a.layers - model::CeilDivide(a.layers, 6), a, unified ? 1024 : 512);
  a.keys_are_values = c.Flag("attention_k_eq_v", false);
  SetFullHeads(
      c.Has("per_layer_config") ? HeadsOfBlocks(c, a) : HeadsOfFile(c, a), a);
  RequireEvenlyShared(c, a);
  a.norm_placement = model::NormPlacement::kBoth;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  a.value_norm = true;
  a.scaled_scores = false;
  constexpr const char* kCap = "final_logit_softcapping";
  a.output_soft_cap = c.Has(kCap) && HasCap(c, kCap);
  if (a.keys_are_values && a.windowed_layers == a.layers) {
    a.keys_are_values = false;
  }
  ReadExpertsOfGemma4(c, a);
  // Of "vision" tokens of text see what is before them.
  if (c.Has("use_bidirectional_attention") &&
      c.At("use_bidirectional_attention") != "vision") {
    c.Expected("use_bidirectional_attention",
               "null or vision",
               c.At("use_bidirectional_attention"));
  }
  Ignore(c, {"global_head_dim", "num_global_key_value_heads"});
  return a;
}

Architecture ReadGemma4(const ConfigJson& c) {
  return ReadGemma4s(c, /*unified=*/false);
}

Architecture ReadGemma4Unified(const ConfigJson& c) {
  return ReadGemma4s(c, /*unified=*/true);
}

// How many of a list of 0 and 1, one a block, are 1.
int64_t CountOnes(const ConfigJson& c, const char* key, int64_t layers) {
  int64_t ones = 0;
  int64_t block = 0;
  for (const json& one : c.List(key, layers, "numbers")) {
    if (one != 0 && one != 1) {
      c.Expected(fmt::format("{}[{}]", key, block), "0 or 1", one);
    }
    if (one == 1) ++ones;
    ++block;
  }
  return ones;
}

// What the files that came before Transformers had the type say of blocks with
// a window, which its class has by itself.
void ExpectMiMoWindows(const ConfigJson& c, const Architecture& a) {
  c.Expect("add_full_attention_sink_bias", false);
  c.Expect("add_swa_attention_sink_bias", true);
  c.Expect("swa_head_dim", a.head_size);
  c.Expect("swa_num_attention_heads", a.heads);
  c.Expect("swa_num_key_value_heads", a.key_value_heads);
  c.Expect("swa_v_head_dim", a.value_head_size);
  Ignore(c,
         {"attention_chunk_size",
          "attention_projection_layout",
          "attention_value_scale",
          "layernorm_epsilon",
          "quantization_config",
          "swa_rope_theta"});
}

// Xiaomi 2026, "MiMo-V2-Flash": twice as many heads of keys, and sinks, in
// blocks with a window; the first block and every sixth see all.
Architecture ReadMiMoV2Flash(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(4, 192));
  if (a.head_size == 0) a.head_size = 192;
  a.value_head_size = c.PositiveCount("v_head_dim", 128);
  a.output_bias = false;
  a.rotary_head_size = RotarySize(c, a, "partial_rotary_factor", 0.334);
  constexpr const char* kPattern = "hybrid_layer_pattern";
  ReadWindow(c,
             c.Has(kPattern)
                 ? CountOnes(c, kPattern, a.layers)
                 : std::max<int64_t>(0, a.layers - 1 - a.layers / 6),
             a,
             129);
  // As many before a token, which the class has with the token itself.
  constexpr const char* kBefore = "sliding_window_size";
  if (a.windowed_layers > 0 && c.Has(kBefore)) {
    a.window = std::min(c.PositiveCount(kBefore) + 1, a.positions);
  }
  if (a.windowed_layers > 0) {
    const int64_t full = a.key_heads();
    a.key_value_heads = 2 * full;
    a.attention_sinks = true;
    if (a.windowed_layers < a.layers) {
      a.full_key_value_heads = full;
      a.windowed_sinks = true;
    }
    ExpectMiMoWindows(c, a);
  }
  a.experts = c.Count(ExpertsKey(c), 256);
  a.experts_per_token = c.Count("num_experts_per_tok", 8);
  a.expert_intermediate = c.Count("moe_intermediate_size", 2048);
  constexpr const char* kSparse = "moe_layer_freq";
  a.dense_layers = DenseBlocks(
      c,
      a.layers,
      c.Has(kSparse) ? a.layers - CountOnes(c, kSparse, a.layers) : 1);
  c.Expect("n_shared_experts", 0);
  return a;
}

constexpr auto kTypes = std::to_array<ModelType>({
    {"gemma4_text", &ReadGemma4},
    {"gemma4_unified_text", &ReadGemma4Unified},
    {"mimo_v2_flash", &ReadMiMoV2Flash},
});

}  // namespace

std::span<const ModelType> FullAttentionTypes() { return kTypes; }

}  // namespace trainfare::hardware
