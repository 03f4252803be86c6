#pragma once

// One operation of a training step, as it is timed by itself.

#include <cstdint>
#include <string>
#include <vector>

#include "model/kernels.h"

namespace trainfare::trainer {

// One operation of the trainer and the kernels that the model counts for it:
// LibTorch's gradient of LayerNorm is two kernels of the model.
struct Operation {
  std::string name;
  model::Phase phase = model::Phase::kForward;
  model::KernelKind kind = model::KernelKind::kGemm;
  std::vector<model::Kernel> kernels;
  int64_t per_step = 0;  // how often one optimizer step does it
};

}  // namespace trainfare::trainer
