#include "model/kernels.h"

#include <utility>

#include "model/gradient_compression.h"
#include "model/internal/passes/pass.h"
#include "model/internal/passes/passes.h"
#include "model/optimizer_kernels.h"

namespace trainfare::model {

KernelList ExpandKernels(const Workload& w) {
  internal::Pass pass(w);
  internal::ForwardPass(pass);
  if (w.work != Work::kForward) internal::BackwardPass(pass);
  if (w.work == Work::kTraining && w.parallel.offload == Offload::kNone) {
    if (w.compression.kind != CompressionKind::kNone) {
      pass.Open(Phase::kOptimizer, SegmentRole::kCompression, 1);
      AppendCompressionKernels(w, pass.list.kernels);
      pass.Close();
    }
    pass.Open(Phase::kOptimizer, SegmentRole::kOptimizer, 1);
    AppendOptimizerKernels(w, pass.list.kernels);
    pass.Close();
  }
  return std::move(pass.list);
}

int64_t PassesInStep(const Workload& workload, Phase phase) {
  return phase == Phase::kOptimizer ? 1 : workload.accumulation;
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
