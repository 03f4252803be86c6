#include "hardware/models/time_at_peak.h"

#include "model/kernels.h"
#include "model/parallel.h"

namespace trainfare::hardware {

std::optional<model::Seconds<>> TimeAtPeak(const Device& device,
                                           const model::Workload& workload) {
  const auto peak = device.MatrixPeak(workload.precision);
  if (!peak) return std::nullopt;
  const auto ranks =
      static_cast<double>(model::RanksOfModel(workload.parallel));
  return model::Flops<>(static_cast<double>(model::StepModelFlops(workload)) /
                        ranks) /
         *peak;
}

}  // namespace trainfare::hardware
