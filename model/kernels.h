#pragma once

// The kernels of one training step: what the device is asked to do, counted.
// Counts are integers and follow from the workload alone; how long a device
// takes for them is hardware/models/.
//
// Layers are alike: a block is counted once and repeated. docs/models/counts.md
// derives the counts of BERT by hand; tests/model/kernels_test.cc asserts them.

#include <cstdint>

#include "model/kernel_list.h"
#include "model/workload.h"

namespace trainfare::model {

// The kernels of one micro-batch's forward and backward pass and of one
// optimizer step. The workload must have passed Validate().
KernelList ExpandKernels(const Workload& workload);

// How often a phase, or a segment, runs in a step: passes once a micro-batch,
// the optimizer once; gradients are added up behind all passes but the first,
// or, where sums are in fp32, behind all of them.
int64_t PassesInStep(const Workload& workload, Phase phase);
int64_t PassesInStep(const Workload& workload, const Segment& segment);

// The pairs of positions whose scores count. Rules differ, so that figures by
// one do not compare with those by another.
enum class CountedPairs {
  kAll,  // Chowdhery et al. 2022 (PaLM, appendix B), torchtitan
  kSeen  // as masks leave them: Megatron-LM's training.py, half of causal ones
};

// FLOPs of products by either rule, both of one walk over the kernels.
struct ModelFlops {
  int64_t all = 0;
  int64_t seen = 0;
  int64_t Of(CountedPairs pairs) const {
    return pairs == CountedPairs::kAll ? all : seen;
  }
};

// FLOPs of all matrix products of one micro-batch's forward pass, counted once:
// its "model FLOPs".
int64_t ForwardModelFlops(const Workload& workload,
                          CountedPairs pairs = CountedPairs::kAll);

// The same of what the workload runs of one micro-batch: the forward pass
// alone, or the backward pass, too, as far as weights train. That is three
// forward passes in full training, whatever is recomputed, and less where
// gradients of frozen weights are not computed.
ModelFlops MicroBatchFlopsByPairs(const Workload& workload);
int64_t MicroBatchModelFlops(const Workload& workload,
                             CountedPairs pairs = CountedPairs::kAll);

// The same of a step's micro-batches together.
int64_t StepModelFlops(const Workload& workload);

}  // namespace trainfare::model
