#include "hardware/models/time_at_peak.h"

#include "model/kernels.h"
#include "model/parallel.h"

namespace trainfare::hardware {

std::optional<model::Seconds<>> TimeAtPeak(const Device& device,
                                           const model::Workload& workload) {
  const auto peak = device.MatrixPeak(workload.precision);
  if (!peak) return std::nullopt;
  const model::Flops<> of_model(
      static_cast<double>(model::StepModelFlops(workload)));
  return model::OfEachRank(of_model, workload.parallel) / *peak;
}

}  // namespace trainfare::hardware
