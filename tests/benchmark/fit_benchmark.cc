// Fits of 100 to 5,000 measurements, of few places and of as many places, with
// and without leaving each run out, and what answers by such a fit: how the time
// grows is what to read, next to the greatest.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/session/plan.h"
#include "hardware/models/device_models.h"

namespace trainfare::calibrate {
namespace {

// Parameters that are not the priors, at which runs are made up.
std::vector<double> Truth(const hardware::Device& device) {
  std::vector<double> truth;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    truth.push_back(FromFitScale(
        info, ToFitScale(info, info.prior) + 0.4 * info.prior_sigma));
  }
  return truth;
}

Observation Observed(const hardware::Device& device,
                     const model::Workload& workload,
                     size_t run,
                     Quantity quantity,
                     model::Seconds<> measured) {
  Observation observation;
  observation.label = std::to_string(run);
  observation.device = device.name;
  observation.workload = workload;
  observation.quantity = quantity;
  observation.measured = measured;
  observation.relative_noise = 0.03;
  return observation;
}

// Runs of four quantities each, few of one shape, 3 % noise around the truth.
std::vector<Observation> Measurements(const hardware::Device& device,
                                      size_t runs) {
  const std::vector<double> truth = Truth(device);
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
      observations.push_back(
          Observed(device,
                   workload,
                   run,
                   quantity,
                   PartOf(time, quantity) * std::exp(normal(random))));
    }
  }
  return observations;
}

// Steps of as many places: any batch to 96 and length to 512 in 32s of the
// candidates' models, 3 % noise and an error of 6 % that goes with the tokens.
std::vector<Observation> DistinctSteps(const hardware::Device& device,
                                       size_t runs) {
  const std::vector<double> truth = Truth(device);
  std::mt19937 random(2);
  std::normal_distribution<double> normal(0.0, 0.03);
  const std::vector<model::Workload> candidates =
      CandidateRuns(device, {model::Precision::kFp32});
  std::set<std::string> seen;
  std::vector<Observation> observations;
  while (observations.size() < runs) {
    model::Workload workload = candidates[random() % candidates.size()];
    workload.batch = 1 + static_cast<int64_t>(random() % 96);
    workload.sequence_length = 32 * (1 + static_cast<int64_t>(random() % 16));
    if (!seen.insert(Describe(workload)).second) continue;
    const double error =
        0.06 * std::sin(std::log(static_cast<double>(workload.tokens())));
    observations.push_back(
        Observed(device,
                 workload,
                 observations.size(),
                 Quantity::kStep,
                 StepModel(device, workload).Time(truth).total() *
                     std::exp(error + normal(random))));
  }
  return observations;
}

// Of how many observations, and how a fit to them is timed.
void OfSizes(benchmark::internal::Benchmark* timed) {
  timed->Arg(100)->Arg(1000)->Arg(5000);
  timed->Complexity()->Unit(benchmark::kMillisecond)->UseRealTime();
}

void FitTo(benchmark::State& state,
           const hardware::Device& device,
           const std::vector<Observation>& observations,
           bool leave_one_out) {
  FitOptions options;
  options.leave_one_out = leave_one_out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(FitDevice(device, observations, options));
  }
  state.SetComplexityN(state.range(0));
}

void FitMeasurements(benchmark::State& state, bool leave_one_out) {
  const hardware::Device device = hardware::HostCpu();
  FitTo(state,
        device,
        Measurements(device, static_cast<size_t>(state.range(0)) / 4),
        leave_one_out);
}
BENCHMARK_CAPTURE(FitMeasurements, all_at_once, false)->Apply(OfSizes);
BENCHMARK_CAPTURE(FitMeasurements, and_leave_one_out, true)->Apply(OfSizes);

void FitPlaces(benchmark::State& state, bool leave_one_out) {
  const hardware::Device device = hardware::HostCpu();
  FitTo(state,
        device,
        DistinctSteps(device, static_cast<size_t>(state.range(0))),
        leave_one_out);
}
BENCHMARK_CAPTURE(FitPlaces, all_at_once, false)->Apply(OfSizes);
BENCHMARK_CAPTURE(FitPlaces, and_leave_one_out, true)->Apply(OfSizes);

// From a fit at hand to its first answer.
void AnswerByPlaces(benchmark::State& state) {
  const hardware::Device device = hardware::HostCpu();
  const std::vector<Observation> observations =
      DistinctSteps(device, static_cast<size_t>(state.range(0)));
  FitOptions options;
  options.leave_one_out = false;
  const Fit fit = FitDevice(device, observations, options);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Predictor(device, fit).Predict(observations.front().workload));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(AnswerByPlaces)->Apply(OfSizes);

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
