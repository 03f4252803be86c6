// Decoders that mix tokens by short convolutions in most of their blocks.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "hardware/files/config_json.h"
#include "hardware/files/decoder_parts.h"
#include "hardware/files/model_config_types.h"
#include "model/rounding.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using nlohmann::json;

// Blocks by their list, or all but those of attention, whose numbers are listed;
// without either all attend.
int64_t ConvolutionLayers(const ConfigJson& c, int64_t layers) {
  constexpr const char* kAttention = "full_attn_idxs";
  const bool numbered = c.Has(kAttention);
  if (const auto listed = CountWords(c, "layer_types", "conv", layers)) {
    return *listed;
  }
  if (!numbered) return 0;
  const json& list = c.At(kAttention);
  if (!list.is_array()) c.Expected(kAttention, "a list of blocks", list);
  std::set<int64_t> attends;
  for (const json& block : list) {
    if (!block.is_number_integer() || block < 0 || block >= layers) {
      c.Expected(fmt::format("{}[{}]", kAttention, attends.size()),
                 fmt::format("one of {} blocks", layers),
                 block);
    }
    attends.insert(block.get<int64_t>());
  }
  return layers - static_cast<int64_t>(attends.size());
}

// Liquid AI 2025, LFM2: Qwen3's attention in the other blocks.
Architecture ReadLfm2s(const ConfigJson& c) {
  constexpr const char* kWidth = "block_ff_dim";
  Architecture usual = UsualHeads(8);
  if (c.Has(kWidth)) usual.intermediate = c.PositiveCount(kWidth);
  Architecture a = ReadLlama(c, /*tied=*/true, usual);
  if (c.Has("tie_embedding")) {
    a.untied_output = !c.Flag("tie_embedding", true);
  }
  // Its class has none, whatever the file says.
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.query_key_norm = model::QueryKeyNorm::kHead;
  a.convolution_layers = ConvolutionLayers(c, a.layers);
  a.convolution_reach = c.PositiveCount("conv_L_cache", 3);
  c.Expect("conv_bias", false);
  // What published files say twice, or of code before the class.
  c.Expect("block_dim", a.hidden);
  c.Expect("block_use_swiglu", true);
  c.Expect("conv_dim", a.hidden);
  c.Expect("conv_dim_out", a.hidden);
  c.Expect("num_heads", a.heads);
  c.Expect("use_pos_enc", true);
  Ignore(c,
         {"block_mlp_init_scale",
          "block_norm_eps",
          "block_out_init_scale",
          "block_use_xavier_init",
          "conv_use_xavier_init",
          "theta"});
  return a;
}

// Two thirds of the width that the file says, in whole multiples of a number.
Architecture ReadLfm2(const ConfigJson& c) {
  Architecture a = ReadLfm2s(c);
  a.intermediate = c.PositiveCount("block_ff_dim", a.intermediate);
  const bool adjusts = c.Flag("block_auto_adjust_ff_dim", true);
  const bool rounds = !c.IsNull("block_ffn_dim_multiplier");
  const double factor =
      rounds ? c.Positive("block_ffn_dim_multiplier", 1.0) : 1.0;
  const int64_t multiple = c.PositiveCount("block_multiple_of", 256);
  if (!adjusts) return a;
  a.intermediate = 2 * a.intermediate / 3;
  if (!rounds) return a;
  const auto scaled =
      static_cast<int64_t>(factor * static_cast<double>(a.intermediate));
  a.intermediate = multiple * model::CeilDivide(scaled, multiple);
  return a;
}

Architecture ReadLfm2Moe(const ConfigJson& c) {
  Architecture a = ReadLfm2s(c);
  c.List("layer_types", a.layers, "words");  // its class builds none without
  ReadExperts(c,
              {.count = 32,
               .per_token = 4,
               .intermediate = 1792,
               .dense = c.Count("num_dense_layers", 2)},
              a);
  Ignore(c, {"use_expert_bias"});
  return a;
}

constexpr std::array kConvolutionTypes = {
    ModelType{"lfm2", &ReadLfm2},
    ModelType{"lfm2_moe", &ReadLfm2Moe},
};

}  // namespace

std::span<const ModelType> ConvolutionTypes() { return kConvolutionTypes; }

}  // namespace trainfare::hardware
