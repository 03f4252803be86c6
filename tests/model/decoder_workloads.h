#pragma once

// Decoders as their tests ask about them: in bf16, by Liger.

#include <cstdint>
#include <string_view>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::model {

inline int64_t BytesOf(const KernelList& list, Phase phase) {
  const PhaseCounts counts = list.Counts(phase);
  return counts.bytes_read + counts.bytes_written;
}

// Of weights in bf16, by Liger.
inline Workload Narrow(std::string_view preset, int64_t batch, int64_t length) {
  Workload w;
  w.architecture = FindArchitecture(preset);
  w.batch = batch;
  w.sequence_length = length;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.stack.attention = Attention::kFlash;
  w.stack.fusion = Fusion::kLiger;
  return w;
}

inline Workload Llama8b(int64_t batch, int64_t length) {
  Workload w = Narrow("llama-3.1-8b", batch, length);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

}  // namespace trainfare::model
