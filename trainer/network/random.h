#pragma once

// Random numbers that do not depend on the number of threads.

#include <cstdint>
#include <vector>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// SplitMix64 (Steele, Lea & Flood 2014): spreads a counter over 64 bits.
inline uint64_t SplitMix64(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// Fills fp32 tensors on the host with N(0, deviation of each), on all cores: a
// calibration draws the weights of every run anew.
void DrawNormal(const std::vector<at::Tensor>& tensors,
                const std::vector<double>& deviations,
                uint64_t seed);

}  // namespace trainfare::trainer
