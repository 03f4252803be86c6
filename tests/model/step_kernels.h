#pragma once

// A step of BERT-base, as docs/models/counts.md works it out, and how often a
// kernel of a step is launched.

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

}  // namespace trainfare::model
