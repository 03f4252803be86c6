// Decoders that mix tokens by short convolutions, in some of their blocks by
// attention.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/internal/presets/decoder_parts.h"
#include "model/internal/presets/families.h"

namespace trainfare::model::internal {
namespace {

constexpr int64_t kWordsOfLfm2 = 65536;
constexpr int64_t kLongestOfLfm2 = 128'000;

// Liquid AI 2025, "LFM2": heads of 64, of keys and values 8; inner widths are
// those that the class makes of the file's.
Architecture Lfm2(std::string name,
                  int64_t layers,
                  int64_t attention,
                  int64_t hidden,
                  int64_t intermediate) {
  Architecture a = Tied(Llama(std::move(name),
                              {layers,
                               hidden,
                               hidden / 64,
                               8,
                               intermediate,
                               kWordsOfLfm2,
                               kLongestOfLfm2}));
  a.query_key_norm = QueryKeyNorm::kHead;
  a.convolution_layers = layers - attention;
  return a;
}

// Two blocks without experts below.
Architecture Lfm2Moe(Architecture a, int64_t experts, int64_t width) {
  a = Experts(std::move(a), {experts, 4, width});
  a.dense_layers = 2;
  return a;
}

}  // namespace

std::vector<Architecture> ConvolutionPresets() {
  return {
      // LiquidAI/LFM2-*, and LFM2.5-* of their shapes
      Lfm2("lfm2-350m", 16, 6, 1024, 4608),
      Lfm2("lfm2-700m", 16, 6, 1536, 6912),
      Lfm2("lfm2-1.2b", 16, 6, 2048, 8192),
      Lfm2("lfm2-2.6b", 30, 8, 2048, 10752),
      Lfm2Moe(Lfm2("lfm2-8b-a1b", 24, 6, 2048, 7168), 32, 1792),
      Lfm2Moe(Lfm2("lfm2-24b-a2b", 40, 10, 2048, 11776), 64, 1536),
  };
}

}  // namespace trainfare::model::internal
