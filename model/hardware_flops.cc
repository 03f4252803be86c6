#include "model/hardware_flops.h"

#include "model/kernel_list.h"

namespace trainfare::model {
namespace {

// Of one micro-batch's forward pass, behind the blocks.
int64_t HeadFlops(const Workload& workload) {
  Workload forward = workload;
  forward.work = Work::kForward;
  const KernelList list = ExpandKernels(forward);
  int64_t flops = 0;
  for (const Segment& segment : list.segments) {
    if (segment.role != SegmentRole::kHead) continue;
    for (const Kernel& kernel : list.Of(segment)) {
      flops += segment.repeat * kernel.launches * kernel.matrix_flops;
    }
  }
  return flops;
}

}  // namespace

int64_t StepHardwareFlops(const Workload& workload, CountedPairs pairs) {
  const int64_t again =
      workload.work == Work::kForward
          ? 0
          : ForwardModelFlops(workload, pairs) - HeadFlops(workload);
  return workload.accumulation *
         (MicroBatchModelFlops(workload, pairs) + again);
}

}  // namespace trainfare::model
