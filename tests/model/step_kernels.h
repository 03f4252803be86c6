#pragma once

// A step of BERT-base, as docs/models/counts.md works it out, how often a kernel
// of a step is launched, and what kernels of a name take together.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::model {

inline Workload BertBase(int64_t batch, int64_t length) {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

inline int64_t CountOf(const KernelList& list,
                       SegmentRole role,
                       Phase phase,
                       std::string_view name) {
  int64_t launches = 0;
  for (const Segment& segment : list.segments) {
    if (segment.phase != phase || segment.role != role) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = list.kernels[static_cast<std::size_t>(i)];
      if (kernel.name.text() == name) launches += kernel.launches;
    }
  }
  return launches;
}

// Of the kernels of a name in a pass, over all segments and launches.
struct KernelSums {
  int64_t launches = 0;
  int64_t bytes = 0;
  int64_t matrix_flops = 0;
  int64_t special_ops = 0;
};

inline KernelSums SumsOf(const Workload& w, KernelName name, Phase phase) {
  KernelSums sums;
  const KernelList list = ExpandKernels(w);
  for (const Segment& segment : list.segments) {
    if (segment.phase != phase) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = list.kernels[static_cast<std::size_t>(i)];
      if (kernel.name != name) continue;
      const int64_t times = segment.repeat * kernel.launches;
      sums.launches += times;
      sums.bytes += times * kernel.bytes();
      sums.matrix_flops += times * kernel.matrix_flops;
      sums.special_ops += times * kernel.special_ops;
    }
  }
  return sums;
}

}  // namespace trainfare::model
