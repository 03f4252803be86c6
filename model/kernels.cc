#include "model/kernels.h"

#include <array>

#include "model/internal/pass_kernels.h"

namespace trainfare::model {
KernelList ExpandKernels(const Workload& workload) {
  return internal::PassKernels(workload).Expand();
}

int64_t MicroBatchModelFlops(const Workload& workload) {
  if (workload.work == Work::kForward) return ForwardModelFlops(workload);
  // In full training every product of the forward pass has two in the backward.
  if (workload.trainable.everything()) return 3 * ForwardModelFlops(workload);
  // Nothing recomputed: neither checkpointed blocks nor flash's scores.
  Workload passes = workload;
  passes.work = Work::kForwardBackward;
  passes.gradient_checkpointing = false;
  passes.checkpointed_blocks = 0;
  passes.stack.attention = Attention::kMaterialised;
  passes.compression = {};
  const KernelList list = ExpandKernels(passes);
  return list.Counts(Phase::kForward).matrix_flops +
         list.Counts(Phase::kBackward).matrix_flops;
}

int64_t StepModelFlops(const Workload& workload) {
  return workload.accumulation * MicroBatchModelFlops(workload);
}

int64_t ForwardModelFlops(const Workload& workload) {
  Workload forward = workload;
  forward.work = Work::kForward;
  // All pairs of positions, as Chowdhery et al. 2022 (PaLM, appendix B) count
  // them, causal or not, and the logits of all positions once.
  forward.stack.attention = Attention::kMaterialised;
  return ExpandKernels(forward).Counts(Phase::kForward).matrix_flops;
}

}  // namespace trainfare::model
