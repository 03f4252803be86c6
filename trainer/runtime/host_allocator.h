#pragma once

#include <cstdint>

namespace trainfare::trainer {

// Replaces LibTorch's CPU allocator by one that keeps large blocks for reuse.
//
// Training asks for the same sizes at every step. The C library would return
// them to the kernel and fault every page in again at the next step. Blocks of
// 64 KiB and more are kept until ReleaseHostMemory(), in huge pages where the
// kernel grants them. Call once, before the first tensor.
void InstallHostAllocator();

struct HostMemory {
  int64_t allocated_bytes = 0;       // in live tensors
  int64_t peak_allocated_bytes = 0;  // since ResetPeakHostMemory()
  int64_t reserved_bytes = 0;        // taken from the kernel for large blocks
};
HostMemory HostMemoryInUse();
void ResetPeakHostMemory();
// Gives blocks that no tensor uses back to the kernel.
void ReleaseHostMemory();

}  // namespace trainfare::trainer
