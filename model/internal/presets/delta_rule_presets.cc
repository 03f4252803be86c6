// Decoders that mix tokens by the gated delta rule, each fourth of their blocks
// by gated attention.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

constexpr int64_t kLongest = 262'144;
constexpr int64_t kWords = 248320;  // of Qwen3.5

// Qwen Team 2025, Qwen3-Next: three blocks of four by the delta rule of heads
// of 128, 16 of keys; heads of 256 in attention, of which a quarter rotates.
Architecture DeltaQwen(std::string name,
                       const Dimensions& d,
                       int64_t value_heads) {
  Architecture a = Rotated(HeadSize(Qwen3(std::move(name), d), 256), 64);
  a.gated_attention = true;
  a.delta_rule_layers = d.layers / 4 * 3;
  a.delta_key_heads = 16;
  a.delta_value_heads = value_heads;
  a.delta_key_size = a.delta_value_size = 128;
  return a;
}

// Experts beside one of the same width, whose sum a gate weighs.
Architecture GatedExperts(Architecture a, int64_t count, int64_t per_token) {
  const int64_t width = a.intermediate;
  a = Experts(std::move(a), {count, per_token, width, width});
  a.shared_expert_gate = true;
  return a;
}

Architecture Qwen3Next() {
  Architecture a = GatedExperts(
      DeltaQwen(
          "qwen3-next-80b-a3b", {48, 2048, 16, 2, 512, 151936, kLongest}, 32),
      512,
      10);
  a.delta_joint_projections = true;
  return a;
}

}  // namespace

std::vector<Architecture> DeltaRulePresets() {
  return {
      // Qwen/Qwen3-Next-80B-A3B-*
      Qwen3Next(),
      // Qwen/Qwen3.5-*, without what sees images
      Tied(DeltaQwen(
          "qwen3.5-0.8b", {24, 1024, 8, 2, 3584, kWords, kLongest}, 16)),
      Tied(DeltaQwen(
          "qwen3.5-2b", {24, 2048, 8, 2, 6144, kWords, kLongest}, 16)),
      Tied(DeltaQwen(
          "qwen3.5-4b", {32, 2560, 16, 4, 9216, kWords, kLongest}, 32)),
      DeltaQwen("qwen3.5-9b", {32, 4096, 16, 4, 12288, kWords, kLongest}, 32),
      DeltaQwen("qwen3.5-27b", {64, 5120, 24, 4, 17408, kWords, kLongest}, 48),
      GatedExperts(
          DeltaQwen(
              "qwen3.5-35b-a3b", {40, 2048, 16, 2, 512, kWords, kLongest}, 32),
          256,
          8),
      GatedExperts(DeltaQwen("qwen3.5-122b-a10b",
                             {48, 3072, 32, 2, 1024, kWords, kLongest},
                             64),
                   256,
                   8),
      GatedExperts(DeltaQwen("qwen3.5-397b-a17b",
                             {60, 4096, 32, 2, 1024, kWords, kLongest},
                             64),
                   512,
                   10),
  };
}

}  // namespace trainfare::model::internal
