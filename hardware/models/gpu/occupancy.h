#pragma once

// How many warps a streaming multiprocessor (SM) holds at once, and how many
// it needs to hide the latency of device memory.

#include <algorithm>
#include <cstdint>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "model/rounding.h"
#include "model/units.h"

namespace trainfare::hardware::models {

// What a warp is, on every GPU.
inline constexpr int64_t kGpuThreadsPerWarp = 32;

// What one thread block takes from its SM.
struct BlockResources {
  int64_t threads = 256;
  int64_t registers_per_thread = 32;
  int64_t shared_memory = 0;  // bytes
};

enum class OccupancyLimit { kWarps, kBlocks, kRegisters, kSharedMemory };

struct Occupancy {
  int64_t blocks = 0;  // resident on one SM
  int64_t warps = 0;
  OccupancyLimit limit = OccupancyLimit::kWarps;
};

// Blocks of one kernel that are resident on an SM at once.
//
//   blocks = min(W / w, B, R / (w ceil_u(32 r)), S / s)
//
//   w, r, s  warps, registers a thread, shared memory of one block
//   W, R, S  warps, registers, shared memory of an SM
//   B, u     blocks that it holds at most, unit of registers (16, 256)
//
// Figures that the device does not state limit nothing. 0 blocks: one block
// alone is more than an SM has.
// Source: CUDA C++ Programming Guide, "Hardware Multithreading".
// Check: docs/models/gpu.md, tests/hardware/models/gpu/occupancy_test.cc.
inline Occupancy OccupancyOf(const Device& device,
                             const BlockResources& block) {
  const int64_t warps = model::CeilDivide(block.threads, kGpuThreadsPerWarp);
  const GpuFacts& facts = FactsOfGpus();
  Occupancy best{facts.blocks_per_core, 0, OccupancyLimit::kBlocks};
  const auto limit = [&](int64_t blocks, OccupancyLimit by) {
    if (blocks < best.blocks) {
      best.blocks = blocks;
      best.limit = by;
    }
  };
  if (device.warps_per_core > 0) {
    limit(device.warps_per_core / warps, OccupancyLimit::kWarps);
  }
  if (device.registers_per_core > 0) {
    const int64_t a_warp = model::CeilToMultiple(
        block.registers_per_thread * kGpuThreadsPerWarp, facts.register_unit);
    limit(device.registers_per_core / (a_warp * warps),
          OccupancyLimit::kRegisters);
  }
  const double shared = device.shared_memory_per_core.base();
  if (shared > 0 && block.shared_memory > 0) {
    limit(static_cast<int64_t>(shared) / block.shared_memory,
          OccupancyLimit::kSharedMemory);
  }
  best.warps = best.blocks * warps;
  return best;
}

// Warps an SM must hold so that its share of the memory bandwidth never waits
// for latency (Little's law): what is under way covers bandwidth x latency.
//
//   N = B L / (SMs 32 v)
//
//   B  bandwidth of device memory       [B/s]
//   L  latency of one transfer          [s]
//   v  bytes that a thread has under way [B]
//
// With N warps or more, memory traffic hides behind arithmetic: this is MWP of
// Hong & Kim (ISCA 2009), the warps that memory serves during one latency.
template <class T>
T WarpsToHideLatency(const Device& device, model::Seconds<T> latency) {
  const double a_warp =
      static_cast<double>(kGpuThreadsPerWarp * FactsOfGpus().bytes_per_thread);
  return latency.base() * (device.memory_bandwidth.base() /
                           (static_cast<double>(device.cores) * a_warp));
}

}  // namespace trainfare::hardware::models
