#pragma once

// Memory of the device that trains, for the records: the processor's or a
// GPU's.

#include <cstdint>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct PeakMemory {
  // What a CPU's process had resident; on a GPU what the driver counts as
  // used: LibTorch's share at its most, CUDA's context, and what others hold.
  int64_t held_bytes = 0;
  int64_t allocated_bytes = 0;  // in tensors
};

// Gives back what no tensor uses, so that a run does not keep the last one's.
void ReleaseMemory(at::Device device);

// Since ResetPeakMemory().
void ResetPeakMemory(at::Device device);
PeakMemory PeakMemoryOf(at::Device device);

}  // namespace trainfare::trainer
