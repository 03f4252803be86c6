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

int64_t PassesInStep(const Workload& workload, const Segment& segment) {
  const int64_t passes = PassesInStep(workload, segment.phase);
  const bool skips_first = segment.role == SegmentRole::kAccumulation &&
                           !SumsGradientsWide(workload);
  return passes - (skips_first ? 1 : 0);
}

namespace {

// Flash attention alone passes over pairs that masks hide: of the FLOPs of its
// products follow the pairs that it sees.
//
//   pairs seen = F / f
//
//   F  FLOPs of its kernel
//   f  FLOPs of a pair: 2 (q + v) forward, and backward twice that, and 2 q of
//      the scores computed anew, which do not count; q and v: sizes of a head's
//      queries and values
ModelFlops FlopsOfFlash(const Kernel& kernel,
                        Phase phase,
                        const Architecture& a) {
  const bool backward = phase == Phase::kBackward;
  const GemmExtents& g = kernel.gemm;
  const int64_t query = g.k;
  // Heads of a size of their own have values as wide (full_head_size).
  const int64_t value =
      query == a.query_head_size() ? a.context_head_size() : query;
  const int64_t counted = (backward ? 4 : 2) * (query + value);
  const int64_t of_pair = backward ? counted + 2 * query : counted;
  return {counted * g.batch * g.m * g.n,
          counted * (kernel.matrix_flops / of_pair)};
}

// What a state space or the delta rule computes going back that is no model's:
// states and scores, or updates and states, anew, and of a state space's frozen
// last product the gradient that the kernel of all makes
// (model/internal/passes/state_space.cc, delta_rule.cc).
bool BesideModel(const Workload& w, const Kernel& kernel, Phase phase) {
  const Architecture& a = w.architecture;
  if (phase != Phase::kBackward) return false;
  if (a.delta_rule_layers > 0) {
    return kernel.name == "chunk updates" || kernel.name == "chunk recurrence";
  }
  if (a.state_space_layers == 0) return false;
  if (kernel.name == "chunk states" || kernel.name == "chunk scores") {
    return true;
  }
  return w.trainable.lora_rank > 0 && kernel.name == "weight gradient" &&
         kernel.gemm.m == a.state_width() && kernel.gemm.n == a.hidden;
}

// Of the passes of `w`, which has flash attention and runs nothing again.
ModelFlops FlopsOfPasses(const Workload& w) {
  ModelFlops sum;
  const KernelList list = ExpandKernels(w);
  for (const Segment& segment : list.segments) {
    for (const Kernel& kernel : list.Of(segment)) {
      if (BesideModel(w, kernel, segment.phase)) continue;
      const ModelFlops once =
          kernel.kind == KernelKind::kAttention
              ? FlopsOfFlash(kernel, segment.phase, w.architecture)
              : ModelFlops{kernel.matrix_flops, kernel.matrix_flops};
      const int64_t times = segment.repeat * kernel.launches;
      sum.all += times * once.all;
      sum.seen += times * once.seen;
    }
  }
  return sum;
}

ModelFlops ForwardFlopsByPairs(const Workload& workload) {
  Workload forward = workload;
  // Alone it has the logits of all positions once.
  forward.work = Work::kForward;
  forward.stack.attention = Attention::kFlash;
  return FlopsOfPasses(forward);
}

}  // namespace

ModelFlops MicroBatchFlopsByPairs(const Workload& workload) {
  // In full training every product of the forward pass has two in the backward.
  const int64_t passes_alike = workload.work == Work::kForward ? 1 : 3;
  if (passes_alike == 1 || workload.trainable.everything()) {
    const ModelFlops forward = ForwardFlopsByPairs(workload);
    return {passes_alike * forward.all, passes_alike * forward.seen};
  }
  // Nothing recomputed.
  Workload passes = workload;
  passes.work = Work::kForwardBackward;
  passes.gradient_checkpointing = false;
  passes.checkpointed_blocks = 0;
  passes.operation_checkpointing = false;
  passes.attention_checkpointing = false;
  passes.stack.attention = Attention::kFlash;
  passes.compression = {};
  return FlopsOfPasses(passes);
}

int64_t MicroBatchModelFlops(const Workload& workload, CountedPairs pairs) {
  return MicroBatchFlopsByPairs(workload).Of(pairs);
}

int64_t StepModelFlops(const Workload& workload) {
  return workload.accumulation * MicroBatchModelFlops(workload);
}

int64_t ForwardModelFlops(const Workload& workload, CountedPairs pairs) {
  return ForwardFlopsByPairs(workload).Of(pairs);
}

}  // namespace trainfare::model
