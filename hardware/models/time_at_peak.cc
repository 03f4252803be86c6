#include "hardware/models/time_at_peak.h"

#include "model/kernels.h"

namespace trainfare::hardware {

std::optional<model::Seconds<>> TimeAtPeak(const Device& device,
                                           const model::Workload& workload) {
  const auto peak = device.MatrixPeak(workload.precision);
  if (!peak) return std::nullopt;
  const bool forward = workload.work == model::Work::kForward;
  const int64_t flops = forward ? model::ForwardModelFlops(workload)
                                : model::StepModelFlops(workload);
  return model::Flops<>(static_cast<double>(flops) *
                        static_cast<double>(workload.accumulation)) /
         *peak;
}

}  // namespace trainfare::hardware
