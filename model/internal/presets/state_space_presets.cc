// Decoders that mix tokens by state spaces (Mamba-2), some of their blocks by
// attention.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

struct StateSpaces {
  int64_t blocks;
  int64_t heads;
  int64_t size;
  int64_t groups;
  int64_t chunk;
};
// Heads of 64 and filters over 4 tokens, which all of them have.
Architecture Mixing(Architecture a, const StateSpaces& s) {
  a.state_space_layers = s.blocks;
  a.state_heads = s.heads;
  a.state_head_size = 64;
  a.state_size = s.size;
  a.state_groups = s.groups;
  a.state_chunk = s.chunk;
  return a;
}

Architecture WithoutPositions(Architecture a) {
  a.position_kind = PositionKind::kNone;
  return a;
}

// NVIDIA 2025, "Nemotron-H", section 2: blocks of one part each, of which so
// many are feed-forwards, a square of ReLU without a gate; no positions.
Architecture NemotronH(std::string name,
                       const Dimensions& d,
                       int64_t feed_forwards,
                       const StateSpaces& s) {
  Architecture a =
      WithoutPositions(Mixing(HeadSize(Llama(std::move(name), d), 128), s));
  a.single_part_blocks = true;
  a.feed_forward_layers = feed_forwards;
  a.gated = false;
  a.activation = Activation::kReluSquared;
  return a;
}

// NVIDIA 2025, "Nemotron 3": experts of a latent width (0: as wide as tokens),
// and one block that predicts tokens, however much further.
Architecture Nemotron3(Architecture a,
                       const ExpertDimensions& e,
                       int64_t latent) {
  a = Experts(std::move(a), e);
  a.expert_latent = latent;
  a.shared_next_token = true;
  return a;
}

// IBM 2025, Granite 4.0: 36 of 40 blocks mix by state spaces, each has a
// feed-forward; no positions, one table.
Architecture GraniteH(std::string name, const Dimensions& d, int64_t heads) {
  return WithoutPositions(
      Mixing(Tied(Llama(std::move(name), d)), {36, heads, 128, 1, 256}));
}

// Its smallest has both products of a gate in one matrix.
Architecture GraniteHMicro() {
  Architecture a = GraniteH(
      "granite-4.0-h-micro", {40, 2048, 32, 8, 8192, 100352, 131072}, 64);
  a.joint_gate = true;
  return a;
}

}  // namespace

std::vector<Architecture> StateSpacePresets() {
  return {
      // nvidia/Nemotron-H-*-Base-8K (Megatron-Bridge's nemotron_h_provider.py)
      NemotronH("nemotron-h-8b",
                {52, 4096, 32, 8, 21504, 131072, 8192},
                24,
                {24, 128, 128, 8, 128}),
      NemotronH("nemotron-h-47b",
                {98, 8192, 64, 8, 30720, 131072, 8192},
                48,
                {45, 256, 256, 8, 128}),
      NemotronH("nemotron-h-56b",
                {118, 8192, 64, 8, 32768, 131072, 8192},
                54,
                {54, 256, 256, 8, 128}),
      // nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B
      Experts(NemotronH("nemotron-3-nano-30b-a3b",
                        {52, 2688, 32, 2, 1856, 131072, 262'144},
                        23,
                        {23, 64, 128, 8, 128}),
              {128, 6, 1856, int64_t{2} * 1856}),
      // nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B, -3-Super-120B-A12B and
      // -3-Ultra-550B-A55B
      Nemotron3(NemotronH("nemotron-3.5-lightning-30b-a3b",
                          {52, 2688, 32, 2, 1856, 131072, 262'144},
                          23,
                          {23, 64, 128, 8, 128}),
                {128, 6, 1856, int64_t{2} * 1856},
                0),
      Nemotron3(NemotronH("nemotron-3-super-120b-a12b",
                          {88, 4096, 32, 2, 2688, 131072, 262'144},
                          40,
                          {40, 128, 128, 8, 128}),
                {512, 22, 2688, int64_t{2} * 2688},
                1024),
      Nemotron3(NemotronH("nemotron-3-ultra-550b-a55b",
                          {108, 8192, 64, 2, 5120, 131072, 262'144},
                          48,
                          {48, 256, 128, 8, 128}),
                {512, 22, 5120, int64_t{2} * 5120},
                2048),
      // ibm-granite/granite-4.0-h-*, granite-4.0-tiny-preview
      GraniteHMicro(),
      Experts(
          GraniteH(
              "granite-4.0-h-tiny", {40, 1536, 12, 4, 512, 100352, 131072}, 48),
          {64, 6, 512, 1024}),
      Experts(GraniteH("granite-4.0-h-small",
                       {40, 4096, 32, 8, 768, 100352, 131072},
                       128),
              {72, 10, 768, 1536}),
      Experts(GraniteH("granite-4.0-tiny-preview",
                       {40, 1536, 12, 4, 512, 49160, 131072},
                       48),
              {62, 6, 512, 1024}),
      // ibm-ai-platform/Bamba-9B-v1
      Mixing(
          Rotated(Llama("bamba-9b", {32, 4096, 32, 8, 14336, 128256, 262'144}),
                  64),
          {29, 128, 128, 1, 256}),
  };
}

}  // namespace trainfare::model::internal
