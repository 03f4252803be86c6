#include "calibrate/session/speed_watch.h"

#include "calibrate/records/measured_observations.h"
#include "calibrate/records/observation.h"
#include "model/architecture.h"
#include "model/units.h"

namespace trainfare::calibrate::internal {
namespace {

constexpr double kLeastStepSeconds = 0.05;
constexpr double kEverySeconds = 30.0;

}  // namespace

void SpeedWatch::Offer(const MeasuredRun& run, double spent_s, Due due) {
  const double step_s = model::ToSeconds(ObservationsOf(run).front().measured);
  if (run_ || run.disturbed || run.device_count != 1 ||
      step_s <= kLeastStepSeconds) {
    return;
  }
  PlannedRun again;
  again.workload = run.workload;
  double steps_s = 0;
  for (const Sample& sample : run.samples) {
    ++(sample.warmup ? again.warmup : again.steps);
    steps_s += model::ToSeconds(sample.step);
  }
  again.expected_duration =
      model::Second(steps_s + kSetUpSecondsPerParameter *
                                  static_cast<double>(model::TotalParameters(
                                      run.workload.architecture)));
  run_ = again;
  due_s_ = spent_s + (due == Due::kNow ? 0.0 : kEverySeconds);
}

std::optional<PlannedRun> SpeedWatch::TakeDue(double spent_s) {
  if (!run_ || spent_s <= due_s_) return std::nullopt;
  due_s_ = spent_s + kEverySeconds;
  return run_;
}

}  // namespace trainfare::calibrate::internal
