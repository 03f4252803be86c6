#pragma once

// How multi-tensor kernels pack many tensors into few launches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/architecture.h"
#include "model/error.h"
#include "model/rounding.h"

namespace trainfare::model {

// Elements of one chunk (one block of threads) and chunks of one launch.
inline constexpr int64_t kElementsPerChunk = 65536;
inline constexpr int64_t kChunksPerLaunch = 320;

// Tensors of one launch of a kernel over `lists` lists of tensors: their
// addresses have to fit into the 4 KB of a kernel's arguments. NVIDIA Apex
// tabulates the first five, one or two lists as 110 and 64 tensors.
inline int64_t TensorsPerLaunch(int64_t lists) {
  constexpr std::array<int64_t, 6> kMost = {110, 64, 48, 36, 30, 24};
  ENSURE(lists >= 1 && lists <= static_cast<int64_t>(kMost.size()),
         "a multi-tensor kernel over one to six lists");
  return kMost.at(static_cast<size_t>(lists - 1));
}

// Chunks of every launch of one multi-tensor kernel over `lists` lists. A
// launch leaves when it has its fill of tensors or of chunks; a tensor that
// the chunks cut in two goes on in the next one.
// Check: tests/model/multi_tensor_test.cc, the grids of published profiles.
inline std::vector<int64_t> MultiTensorLaunches(
    const std::vector<ParameterTensor>& tensors, int64_t lists) {
  const int64_t most_tensors = TensorsPerLaunch(lists);
  std::vector<int64_t> launches;
  int64_t held = 0;
  int64_t chunks = 0;
  for (const ParameterTensor& tensor : tensors) {
    ++held;
    int64_t left = CeilDivide(tensor.elements, kElementsPerChunk);
    while (left > 0) {
      const int64_t taken = std::min(left, kChunksPerLaunch - chunks);
      chunks += taken;
      left -= taken;
      const bool last_of_tensors = held == most_tensors && left == 0;
      if (chunks == kChunksPerLaunch || last_of_tensors) {
        launches.push_back(chunks);
        chunks = 0;
        held = left > 0 ? 1 : 0;
      }
    }
  }
  if (chunks > 0) launches.push_back(chunks);
  return launches;
}

}  // namespace trainfare::model
