// Decoders that mix tokens by state spaces (Mamba-2), in all of their blocks or
// in most.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// What a type calls the dimensions of its state spaces, and what its class has
// where its file does not say.
struct StateSpaceKeys {
  const char* heads;
  const char* head_size;
  const char* size;
  const char* groups;
  const char* convolution;
  const char* chunk;
  const char* filter_bias;
  const char* product_bias;
  int64_t usual_heads;
  int64_t usual_size;
  int64_t usual_chunk;
  int64_t usual_head_size = 0;
  int64_t usual_groups = 1;
  // Of all heads together, where another key says so much; 0: none does.
  int64_t width = 0;
};
constexpr StateSpaceKeys kKeysOfGranite = {"mamba_n_heads",
                                           "mamba_d_head",
                                           "mamba_d_state",
                                           "mamba_n_groups",
                                           "mamba_d_conv",
                                           "mamba_chunk_size",
                                           "mamba_conv_bias",
                                           "mamba_proj_bias",
                                           128,
                                           256,
                                           256};

StateSpaceKeys KeysOfGranite(const ConfigJson& c, const Architecture& a) {
  StateSpaceKeys keys = kKeysOfGranite;
  keys.width = c.PositiveCount("mamba_expand", 2) * a.hidden;
  return keys;
}

void ReadStateSpaces(const ConfigJson& c,
                     const StateSpaceKeys& keys,
                     Architecture& a) {
  a.state_heads = c.PositiveCount(keys.heads, keys.usual_heads);
  // "auto" is as wide as heads divide them all.
  const bool divided = !c.Has(keys.head_size) || c.At(keys.head_size) == "auto";
  if (divided && keys.width > 0) {
    a.state_head_size = keys.width / a.state_heads;
  } else {
    a.state_head_size = c.PositiveCount(keys.head_size, keys.usual_head_size);
  }
  if (a.state_width() != keys.width && keys.width > 0) {
    c.Expected(keys.heads,
               fmt::format("heads that are {} wide together", keys.width),
               json(a.state_heads));
  }
  a.state_size = c.PositiveCount(keys.size, keys.usual_size);
  a.state_groups = c.PositiveCount(keys.groups, keys.usual_groups);
  a.state_convolution = c.PositiveCount(keys.convolution, 4);
  a.state_chunk = c.PositiveCount(keys.chunk, keys.usual_chunk);
  c.Expect(keys.filter_bias, true);
  c.Expect(keys.product_bias, false);
}

// Granite 4, and Bamba before it: what other types share among experts is all of
// the feed-forward where there are none. Positions rotate only where the file
// says so.
Architecture ReadGraniteMoeHybrid(const ConfigJson& c) {
  Architecture a = ReadGranites(c);
  c.At("layer_types");
  int64_t block = 0;
  for (const json& one : c.List("layer_types", a.layers, "words")) {
    // The one is Transformers 5's word for the other.
    if (one == "mamba" || one == "linear_attention") {
      ++a.state_space_layers;
    } else if (one != "attention" && one != "full_attention") {
      c.Expected(
          fmt::format("layer_types[{}]", block), "attention or mamba", one);
    }
    ++block;
  }
  const bool rotates = c.Text("position_embedding_type", "") == "rope";
  if (!rotates) a.position_kind = model::PositionKind::kNone;
  const int64_t shared = c.PositiveCount("shared_intermediate_size", 1024);
  a.experts = c.Count("num_local_experts", 8);
  const int64_t per_token = c.Count("num_experts_per_tok", 2);
  if (a.experts > 0) {
    a.experts_per_token = per_token;
    a.expert_intermediate = a.intermediate;
    a.shared_intermediate = shared;
  } else {
    a.intermediate = shared;
    a.joint_gate = true;
  }
  c.Expect("normalization_function", "rmsnorm");
  Ignore(c, {"init_method", "time_step_limit"});
  if (a.state_space_layers > 0) {
    ReadStateSpaces(c, KeysOfGranite(c, a), a);
  } else {
    const StateSpaceKeys& keys = kKeysOfGranite;
    Ignore(c,
           {keys.heads,
            keys.head_size,
            keys.size,
            keys.groups,
            keys.convolution,
            keys.chunk,
            keys.filter_bias,
            keys.product_bias,
            "mamba_expand"});
  }
  return a;
}

// Blocks of a list of their numbers.
int64_t CountBlocks(const ConfigJson& c, const char* key, int64_t layers) {
  if (!c.Has(key)) return 0;
  const json& list = c.At(key);
  if (!list.is_array()) c.Expected(key, "a list of blocks", list);
  std::set<int64_t> blocks;
  for (const json& block : list) {
    if (!block.is_number_integer() || block < 0 || block >= layers) {
      c.Expected(fmt::format("{}[{}]", key, blocks.size()),
                 fmt::format("a block from 0 to {}", layers - 1),
                 block);
    }
    blocks.insert(block.get<int64_t>());
  }
  return std::ssize(blocks);
}

// Half of each head of attention rotates.
Architecture ReadBamba(const ConfigJson& c) {
  Architecture a = ReadLlama(c, /*tied=*/false, UsualHeads(8));
  a.rotary_head_size = std::min<int64_t>(c.PositiveCount("attn_rotary_emb", 64),
                                         a.query_head_size());
  if (a.rotary_head_size == a.query_head_size()) a.rotary_head_size = 0;
  c.Expect("partial_rotary_factor", 0.5);
  a.state_space_layers =
      a.layers - CountBlocks(c, "attn_layer_indices", a.layers);
  ReadStateSpaces(c, KeysOfGranite(c, a), a);
  Ignore(c, {"num_logits_to_keep", "time_step_limit", "z_loss_coefficient"});
  return a;
}

constexpr const char* kLetters = "hybrid_override_pattern";
constexpr const char* kWords = "layers_block_type";

// The letter of a block's word, which files of Transformers 5 spell anew; any
// other word as it is.
std::string LetterOf(const std::string& word) {
  constexpr auto kLettersOfWords =
      std::to_array<std::pair<std::string_view, char>>(
          {{"mamba", 'M'},
           {"linear_attention", 'M'},
           {"attention", '*'},
           {"full_attention", '*'},
           {"mlp", '-'},
           {"moe", 'E'}});
  for (const auto& [known, letter] : kLettersOfWords) {
    if (word == known) return std::string(1, letter);
  }
  return word;
}

// Blocks by their letters or their words.
std::vector<std::string> BlocksOf(const ConfigJson& c,
                                  const char* words,
                                  const char* letters) {
  std::vector<std::string> blocks;
  if (!c.Has(words)) {
    for (const char letter : c.Text(letters, "")) {
      blocks.push_back(std::string(1, letter));
    }
    return blocks;
  }
  const json& list = c.At(words);
  if (!list.is_array()) c.Expected(words, "a list of words", list);
  for (const json& one : list) {
    blocks.push_back(one.is_string() ? LetterOf(one.get<std::string>()) : "");
  }
  return blocks;
}

// The blocks that Nemotron-H's files have.
void ReadBlocks(const ConfigJson& c, Architecture& a) {
  const std::vector<std::string> blocks = BlocksOf(c, kWords, kLetters);
  const char* key = c.Has(kWords) ? kWords : kLetters;
  if (std::ssize(blocks) != a.layers) {
    c.Fail(key,
           fmt::format("expected {} blocks, got {}", a.layers, blocks.size()));
  }
  int64_t experts = 0;
  int64_t number = 0;
  for (const std::string& block : blocks) {
    if (block == "M") {
      ++a.state_space_layers;
    } else if (block == "-") {
      ++a.feed_forward_layers;
    } else if (block == "E") {
      ++a.feed_forward_layers;
      ++experts;
    } else if (block != "*") {
      c.Fail(fmt::format("{}[{}]", key, number),
             fmt::format("expected M, *, - or E, got \"{}\"; other blocks are "
                         "not counted",
                         block));
    }
    ++number;
  }
  a.single_part_blocks = true;
  if (experts == 0) {
    a.experts = 0;
  } else if (experts != a.feed_forward_layers) {
    c.Fail(key, "expected feed-forwards all with experts or all without");
  }
}

// What predicts tokens further is not built by Transformers. Where the file has
// one such block, more of them are that one again (Megatron-Bridge's
// mtp_use_repeated_layer); it is counted of attention and experts.
void ReadNextToken(const ConfigJson& c, Architecture& a) {
  constexpr const char* kNextLetters = "mtp_hybrid_override_pattern";
  constexpr const char* kNextWords = "mtp_layers_block_type";
  a.shared_next_token = c.Count("num_nextn_predict_layers", 0) == 1;
  if (!c.Has(kNextLetters) && !c.Has(kNextWords)) return;
  const std::vector<std::string> blocks = BlocksOf(c, kNextWords, kNextLetters);
  const std::string widens = a.experts > 0 ? "E" : "-";
  const bool counted = blocks == std::vector<std::string>{"*", widens};
  if (counted || c.Count("num_nextn_predict_layers", 0) == 0) return;
  c.Fail(c.Has(kNextWords) ? kNextWords : kNextLetters,
         fmt::format("expected attention and {}; other blocks that predict "
                     "tokens further are not counted",
                     a.experts > 0 ? "experts" : "a feed-forward"));
}

// Their keys are known to files without experts, too.
void ReadNemotronExperts(const ConfigJson& c, Architecture& a) {
  const int64_t per_token = c.Count("num_experts_per_tok", 2);
  constexpr int64_t kUsualWidth = 7688;
  const int64_t width = c.Count("moe_intermediate_size", kUsualWidth);
  const int64_t shared =
      c.Count("moe_shared_expert_intermediate_size", kUsualWidth) *
      c.Count("n_shared_experts", 1);
  const int64_t latent = c.Count("moe_latent_size", 0);
  if (a.experts == 0) return;
  a.experts_per_token = per_token;
  a.expert_intermediate = width;
  a.shared_intermediate = shared;
  a.expert_latent = latent;
  c.Expect("mlp_bias", false);
}

// NVIDIA 2025, "Nemotron-H": a part a block, and no positions.
Architecture ReadNemotronH(const ConfigJson& c) {
  Architecture usual = UsualHeads(8);
  usual.head_size = c.PositiveCount("attention_head_dim", 128);
  // Files may leave their number to the list of blocks.
  if (!c.Has("num_hidden_layers")) {
    usual.layers = std::ssize(BlocksOf(c, kWords, kLetters));
  }
  Architecture a = ReadLlama(c, /*tied=*/false, usual);
  if (a.head_size == 0) a.head_size = usual.head_size;
  a.position_kind = model::PositionKind::kNone;
  a.gated = false;
  ReadActivation(c, "mlp_hidden_act", "relu2", a);
  c.Expect("use_bias", false);
  ExpectDropout(c, "hidden_dropout", 0.0, {"attention_dropout", a.dropout});
  c.Expect("mamba_hidden_act", "silu");
  c.Expect("residual_in_fp32", false);
  c.Expect("use_mamba_kernels", true);
  if (c.Has("sliding_window")) {
    c.Expected("sliding_window", "none", c.At("sliding_window"));
  }
  a.experts = c.Count("n_routed_experts", 8);
  ReadBlocks(c, a);
  ReadNemotronExperts(c, a);
  ReadNextToken(c, a);
  const StateSpaceKeys keys{.heads = "mamba_num_heads",
                            .head_size = "mamba_head_dim",
                            .size = "ssm_state_size",
                            .groups = "n_groups",
                            .convolution = "conv_kernel",
                            .chunk = "chunk_size",
                            .filter_bias = "use_conv_bias",
                            .product_bias = "mamba_proj_bias",
                            .usual_heads = 128,
                            .usual_size = 128,
                            .usual_chunk = 128,
                            .usual_head_size = 64,
                            .usual_groups = 8};
  if (a.state_space_layers > 0) ReadStateSpaces(c, keys, a);
  Ignore(c,
         {"expand",
          "mamba_dt_rank",
          "mamba_ssm_cache_dtype",
          "moe_shared_expert_overlap",
          "num_logits_to_keep",
          "partial_rotary_factor",
          "rescale_prenorm_residual",
          "time_step_floor",
          "time_step_limit",
          "time_step_max",
          "time_step_min",
          "time_step_rank"});
  return a;
}

constexpr std::array kStateSpaceTypes = {
    ModelType{"bamba", &ReadBamba},
    ModelType{"granitemoehybrid", &ReadGraniteMoeHybrid},
    ModelType{"nemotron_h", &ReadNemotronH},
};

}  // namespace

std::span<const ModelType> StateSpaceTypes() { return kStateSpaceTypes; }

}  // namespace trainfare::hardware
