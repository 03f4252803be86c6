#pragma once

// What a profiler's instruction counters show of a step on a GPU: the warp
// instructions of every kernel and the floating-point operations of its lanes.
//
// Times do not come from here (gpu.h): the counts are of the kernels of two
// translation stacks, Fairseq and LightSeq2, whose published profiles they are
// held against. docs/models/counts.md, "Instructions": where each is from.

#include <cstdint>
#include <string_view>

#include "hardware/catalog/device.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// Counters of nvprof, summed over a kernel's launch.
struct GpuInstructions {
  double executed = 0;  // inst_executed: by warps
  double warps = 0;
  double fp32_flops = 0;  // flop_count_sp: of lanes, a multiply-add is 2
  // flop_count_hp: a packed instruction is two operations; widening a half is
  // an addition (HADD2.F32) and counted as one. Tensor cores are not in it.
  double fp16_flops = 0;
  double blocks = 0;
  // Warps on an SM at once, of a kernel; sums have none.
  double resident_warps = 0;

  GpuInstructions& operator+=(const GpuInstructions& other) {
    executed += other.executed;
    warps += other.warps;
    fp32_flops += other.fp32_flops;
    fp16_flops += other.fp16_flops;
    blocks += other.blocks;
    return *this;
  }
  friend GpuInstructions operator*(const GpuInstructions& a, double times) {
    GpuInstructions scaled = a;
    scaled.executed *= times;
    scaled.warps *= times;
    scaled.fp32_flops *= times;
    scaled.fp16_flops *= times;
    scaled.blocks *= times;
    return scaled;
  }
};

// The instructions of one launch of a kernel of a step in fp16 in Fairseq or
// LightSeq2. Throws InputError for a kernel whose instructions nobody has
// counted.
GpuInstructions InstructionsOf(const Device& device,
                               const model::Workload& workload,
                               const model::Kernel& kernel);

}  // namespace trainfare::hardware::models
