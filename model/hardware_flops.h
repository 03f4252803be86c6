#pragma once

// FLOPs of a step as frameworks count them that print those of the hardware,
// what was recomputed included; model FLOPs are kernels.h's.

#include <cstdint>

#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::model {

// FLOPs of all matrix products of a step with every block computed once more in
// the backward pass, whatever the workload recomputes: of full training, blocks
// count four forward passes and what is behind them (the logits) three.
// Narayanan et al. 2021 ("Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", section 5.1): 96 B s l h^2 (1 + s / (6 h) +
// V / (16 l h)), of all pairs of positions.
int64_t StepHardwareFlops(const Workload& workload,
                          CountedPairs pairs = CountedPairs::kAll);

}  // namespace trainfare::model
