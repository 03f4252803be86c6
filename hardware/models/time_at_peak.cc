#include "hardware/models/time_at_peak.h"

#include "model/kernels.h"

namespace trainfare::hardware {

std::optional<model::Seconds<>> TimeAtPeak(const Device& device,
                                           const model::Workload& workload) {
  const auto peak = device.MatrixPeak(workload.precision);
  if (!peak) return std::nullopt;
  const bool training = workload.work == model::Work::kTraining;
  const int64_t flops = training ? model::StepModelFlops(workload)
                                 : model::ForwardModelFlops(workload);
  return model::Flops<>(static_cast<double>(flops) *
                        static_cast<double>(workload.accumulation)) /
         *peak;
}

}  // namespace trainfare::hardware
