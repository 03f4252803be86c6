// Fits of 100 to 5,000 measurements, with and without leaving each run out: how
// the time grows is what to read, next to the greatest.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/session/plan.h"
#include "hardware/models/device_models.h"

namespace trainfare::calibrate {
namespace {

// Runs of four quantities each, few of one shape, 3 % noise around parameters
// that are not the priors.
std::vector<Observation> Measurements(const hardware::Device& device,
                                      size_t runs) {
  std::vector<double> truth;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    truth.push_back(FromFitScale(
        info, ToFitScale(info, info.prior) + 0.4 * info.prior_sigma));
  }
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0.0, 0.03);
  const std::vector<model::Workload> candidates =
      CandidateRuns(device, {model::Precision::kFp32});
  std::vector<Observation> observations;
  for (size_t run = 0; run < runs; ++run) {
    // One more than the candidates is one of them again, a sequence more.
    model::Workload workload = candidates[run % candidates.size()];
    workload.batch += static_cast<int64_t>(run / candidates.size());
    const auto time = StepModel(device, workload).Time(truth);
    for (const Quantity quantity : {Quantity::kStep,
                                    Quantity::kForward,
                                    Quantity::kBackward,
                                    Quantity::kOptimizer}) {
      Observation observation;
      observation.label = std::to_string(run);
      observation.device = device.name;
      observation.workload = workload;
      observation.quantity = quantity;
      observation.measured = PartOf(time, quantity) * std::exp(normal(random));
      observation.relative_noise = 0.03;
      observations.push_back(std::move(observation));
    }
  }
  return observations;
}

void FitMeasurements(benchmark::State& state, bool leave_one_out) {
  const hardware::Device device = hardware::HostCpu();
  const std::vector<Observation> observations =
      Measurements(device, static_cast<size_t>(state.range(0)) / 4);
  FitOptions options;
  options.leave_one_out = leave_one_out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(FitDevice(device, observations, options));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK_CAPTURE(FitMeasurements, all_at_once, false)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(5000)
    ->Complexity()
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(FitMeasurements, and_leave_one_out, true)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(5000)
    ->Complexity()
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void ChooseNextRun(benchmark::State& state) {
  const hardware::Device device = hardware::HostCpu();
  PlanOptions options;
  options.candidates = CandidateRuns(device, {model::Precision::kFp32});
  const Planner planner(device, options);
  const Fit prior = PriorFit(device);
  for (auto _ : state) {
    benchmark::DoNotOptimize(planner.Next(prior, model::Second(60.0)));
  }
}
BENCHMARK(ChooseNextRun)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainfare::calibrate
