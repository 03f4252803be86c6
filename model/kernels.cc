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

namespace {

// Flash attention alone passes over what masks hide.
Attention AttentionOver(CountedPairs pairs) {
  return pairs == CountedPairs::kAll ? Attention::kMaterialised
                                     : Attention::kFlash;
}

// Of the five products of flash's backward pass, the scores computed anew: one
// over queries' size, of three over that and two over values'.
int64_t RecomputedScores(const KernelList& list, const Architecture& a) {
  int64_t flops = 0;
  for (const Segment& segment : list.segments) {
    for (const Kernel& kernel : list.Of(segment)) {
      if (kernel.name != "flash attention gradient") continue;
      const int64_t size = a.query_head_size();
      const int64_t sizes = 3 * size + 2 * a.context_head_size();
      flops += segment.repeat * kernel.launches *
               (kernel.matrix_flops / sizes) * size;
    }
  }
  return flops;
}

}  // namespace

int64_t MicroBatchModelFlops(const Workload& workload, CountedPairs pairs) {
  // In full training every product of the forward pass has two in the backward.
  const int64_t passes_alike = workload.work == Work::kForward ? 1 : 3;
  if (passes_alike == 1 || workload.trainable.everything()) {
    return passes_alike * ForwardModelFlops(workload, pairs);
  }
  // Nothing recomputed: neither checkpointed blocks nor flash's scores.
  Workload passes = workload;
  passes.work = Work::kForwardBackward;
  passes.gradient_checkpointing = false;
  passes.checkpointed_blocks = 0;
  passes.stack.attention = AttentionOver(pairs);
  passes.compression = {};
  const KernelList list = ExpandKernels(passes);
  return list.Counts(Phase::kForward).matrix_flops +
         list.Counts(Phase::kBackward).matrix_flops -
         RecomputedScores(list, workload.architecture);
}

int64_t StepModelFlops(const Workload& workload) {
  return workload.accumulation * MicroBatchModelFlops(workload);
}

int64_t ForwardModelFlops(const Workload& workload, CountedPairs pairs) {
  Workload forward = workload;
  // Alone it has the logits of all positions once.
  forward.work = Work::kForward;
  forward.stack.attention = AttentionOver(pairs);
  return ExpandKernels(forward).Counts(Phase::kForward).matrix_flops;
}

}  // namespace trainfare::model
