#include "calibrate/records/measured_observations.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "calibrate/records/disturbance.h"
#include "calibrate/records/statistics.h"

namespace trainfare::calibrate {

using model::Seconds;

std::vector<Observation> ObservationsOf(const MeasuredRun& run) {
  std::vector<double> step;
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> optimizer;
  for (const Sample& sample : run.samples) {
    if (sample.warmup) continue;
    step.push_back(model::ToSeconds(sample.step));
    if (sample.forward) forward.push_back(model::ToSeconds(*sample.forward));
    if (sample.backward) backward.push_back(model::ToSeconds(*sample.backward));
    if (sample.optimizer) {
      optimizer.push_back(model::ToSeconds(*sample.optimizer));
    }
  }
  std::vector<Observation> observations;
  const auto add = [&](Quantity quantity, const std::vector<double>& samples) {
    // A part timed in some steps only has no median that compares.
    if (samples.empty() || samples.size() != step.size()) return;
    Observation observation;
    observation.label = run.id;
    observation.group = run.workload.architecture.name;
    observation.device = run.device;
    observation.device_count = run.device_count;
    observation.of_timed_ranks = run.device_count > 1;
    observation.workload = run.workload;
    observation.quantity = quantity;
    observation.measured = Seconds<>(Median(samples));
    observation.relative_noise =
        std::hypot(RelativeNoiseOfMedian(samples), DisturbanceNoise(run));
    observation.framework = run.software;
    observation.assumed = MakesStep(run.assumed);
    observations.push_back(std::move(observation));
  };
  add(Quantity::kStep, step);
  add(Quantity::kForward, forward);
  add(Quantity::kBackward, backward);
  add(Quantity::kOptimizer, optimizer);
  return observations;
}

KernelObservation ObservationOf(const MeasuredKernel& measured) {
  KernelObservation observation;
  observation.label = measured.id;
  observation.device = measured.device;
  observation.workload = measured.workload;
  observation.operation = measured.operation;
  observation.phase = measured.phase;
  observation.kernels = measured.kernels;
  observation.measured = measured.time;
  observation.relative_noise =
      std::hypot(measured.relative_noise, DisturbanceNoise(measured));
  return observation;
}

std::vector<PowerObservation> PowersOf(const std::vector<MeasuredRun>& runs) {
  std::vector<PowerObservation> powers;
  for (const MeasuredRun& run : runs) {
    if (!run.mean_power || run.device_count != 1 || run.disturbed) continue;
    PowerObservation power;
    power.label = run.id;
    power.device = run.device;
    power.workload = run.workload;
    power.measured = *run.mean_power;
    powers.push_back(std::move(power));
  }
  return powers;
}

std::vector<Observation> ObservationsOf(const std::vector<MeasuredRun>& runs) {
  std::vector<Observation> observations;
  for (const MeasuredRun& run : runs) {
    std::vector<Observation> of_run = ObservationsOf(run);
    std::move(of_run.begin(), of_run.end(), std::back_inserter(observations));
  }
  return observations;
}

}  // namespace trainfare::calibrate
