#include "calibrate/session/known_so_far.h"

#include <fmt/format.h>

#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

Fit FitSoFar(const hardware::Device& device,
             const std::vector<Observation>& observations) {
  FitOptions options;
  options.leave_one_out = false;
  options.name_runs = false;
  return FitDevice(device, observations, options);
}

double MeanInterval(const Predictor& predictor,
                    const std::vector<model::Workload>& asked) {
  double sum = 0.0;
  for (const model::Workload& step : asked) {
    const StepPrediction answer = predictor.Predict(step);
    sum += 0.5 * (answer.high_factor - answer.low_factor);
  }
  return sum / static_cast<double>(asked.size());
}

}  // namespace

KnownSoFar::KnownSoFar(const hardware::Device& device,
                       const std::vector<model::Workload>& asked)
    : device_(device), asked_(asked), fit_(PriorFit(device)) {}

void KnownSoFar::Learn(const std::vector<Observation>& observations,
                       ProgressLog& progress) {
  if (!observations.empty()) {
    try {
      fit_ = FitSoFar(device_, observations);
    } catch (const model::InputError& error) {
      progress.Note(error.what());
    }
  }
  if (asked_.empty()) return;
  interval_before_ = std::exchange(
      interval_,
      MeanInterval(
          observations.empty() ? Predictor(device_) : Predictor(device_, fit_),
          asked_));
}

std::string KnownSoFar::Worth() const {
  if (asked_.empty()) return "";
  return fmt::format("; of the asked step +-{:.1f} -> +-{:.1f} %",
                     100.0 * interval_before_,
                     100.0 * interval_);
}

}  // namespace trainfare::calibrate::internal
