#include "model/kernels.h"

#include <array>

#include "model/internal/enum_names.h"
#include "model/internal/pass_kernels.h"

namespace trainfare::model {
namespace {

constexpr std::array kKinds = {
    std::pair{KernelKind::kGemm, std::string_view("gemm")},
    std::pair{KernelKind::kBatchedGemm, std::string_view("batched gemm")},
    std::pair{KernelKind::kAttention, std::string_view("attention")},
    std::pair{KernelKind::kElementwise, std::string_view("elementwise")},
    std::pair{KernelKind::kReduction, std::string_view("reduction")},
    std::pair{KernelKind::kEmbedding, std::string_view("embedding")},
    std::pair{KernelKind::kOptimizer, std::string_view("optimizer")},
    std::pair{KernelKind::kCopy, std::string_view("copy")},
};
constexpr std::array kPhases = {
    std::pair{Phase::kForward, std::string_view("forward")},
    std::pair{Phase::kBackward, std::string_view("backward")},
    std::pair{Phase::kOptimizer, std::string_view("optimizer")},
};

}  // namespace

PhaseCounts KernelList::Counts(Phase phase) const {
  PhaseCounts sum;
  for (const Segment& segment : segments) {
    if (segment.phase != phase) continue;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = kernels[static_cast<std::size_t>(i)];
      const int64_t times = segment.repeat * kernel.launches;
      sum.matrix_flops += times * kernel.matrix_flops;
      sum.vector_flops += times * kernel.vector_flops;
      sum.special_ops += times * kernel.special_ops;
      sum.random_draws += times * kernel.random_draws;
      sum.bytes_read += times * kernel.bytes_read;
      sum.bytes_written += times * kernel.bytes_written;
      sum.launches += times;
    }
  }
  return sum;
}

KernelList ExpandKernels(const Workload& workload) {
  return internal::PassKernels(workload).Expand();
}

int64_t StepModelFlops(const Workload& workload) {
  // In full training every product of the forward pass has two in the backward.
  if (workload.trainable.everything()) return 3 * ForwardModelFlops(workload);
  // Nothing recomputed: neither checkpointed blocks nor flash's scores.
  Workload passes = workload;
  passes.work = Work::kForwardBackward;
  passes.gradient_checkpointing = false;
  passes.stack.attention = Attention::kMaterialised;
  passes.compression = {};
  const KernelList list = ExpandKernels(passes);
  return list.Counts(Phase::kForward).matrix_flops +
         list.Counts(Phase::kBackward).matrix_flops;
}

int64_t ForwardModelFlops(const Workload& workload) {
  Workload forward = workload;
  forward.work = Work::kForward;
  // All pairs of positions, as Chowdhery et al. 2022 (PaLM, appendix B) count
  // them, causal or not, and the logits of all positions once.
  forward.stack.attention = Attention::kMaterialised;
  return ExpandKernels(forward).Counts(Phase::kForward).matrix_flops;
}

std::string_view ToText(KernelKind kind) {
  return internal::EnumName(kind, kKinds);
}
std::string_view ToText(Phase phase) {
  return internal::EnumName(phase, kPhases);
}
KernelKind KernelKindFromText(std::string_view text) {
  return internal::EnumFromName(text, kKinds, "kind of kernel");
}
Phase PhaseFromText(std::string_view text) {
  return internal::EnumFromName(text, kPhases, "phase");
}

}  // namespace trainfare::model
