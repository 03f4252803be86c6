#include "calibrate/fit/fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_json.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Workload;

Device Processor() {
  Device device;
  device.name = "cpu";
  device.reported_name = "Example 9000";
  device.vendor = "Example";
  device.architecture = "x86_64";
  device.kind = DeviceKind::kCpu;
  device.source = "made up for a test";
  device.memory_capacity = model::GiB(24);
  device.memory_bandwidth = model::GBPerSecond(30);
  device.on_chip_memory = model::MiB(32);
  device.peak.fp32 = model::TFlopPerSecond(0.2);
  device.peak.bf16 = model::TFlopPerSecond(0.4);
  device.cores = 2;
  return device;
}

Workload Step(const char* name, int64_t batch, int64_t length) {
  Workload workload;
  workload.architecture = model::FindArchitecture(name);
  workload.batch = batch;
  workload.sequence_length = length;
  workload.optimizer.implementation = model::OptimizerImplementation::kFused;
  return workload;
}

std::vector<Workload> BroadPlan() {
  std::vector<Workload> plan;
  for (const char* name : {"bert-tiny", "bert-mini", "bert-base-uncased"}) {
    for (const int64_t batch : {1, 4, 16}) {
      for (const int64_t length : {16, 64, 256}) {
        plan.push_back(Step(name, batch, length));
      }
    }
  }
  return plan;
}

// Parameters away from their priors, each by the same share of its sigma.
std::vector<double> Truth(const Device& device, double away) {
  std::vector<double> values;
  double sign = 1.0;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    const double moved =
        ToFitScale(info, info.prior) + sign * away * info.prior_sigma;
    values.push_back(
        std::clamp(FromFitScale(info, moved), info.lower, info.upper));
    sign = -sign;
  }
  return values;
}

// What the model itself says, all four quantities, with relative noise.
std::vector<Observation> Synthetic(const Device& device,
                                   const std::vector<double>& truth,
                                   const std::vector<Workload>& plan,
                                   double noise,
                                   unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, 1.0);
  std::vector<Observation> observations;
  int run = 0;
  for (const Workload& workload : plan) {
    ++run;
    const auto time = StepModel(device, workload).Time(truth);
    for (const Quantity quantity : {Quantity::kStep,
                                    Quantity::kForward,
                                    Quantity::kBackward,
                                    Quantity::kOptimizer}) {
      Observation observation;
      observation.label = "run " + std::to_string(run);
      observation.device = device.reported_name;
      observation.workload = workload;
      observation.quantity = quantity;
      observation.measured =
          PartOf(time, quantity) * std::exp(noise * normal(random));
      observation.relative_noise = noise;
      observations.push_back(std::move(observation));
    }
  }
  return observations;
}

double StepSeconds(const Device& device,
                   const std::vector<double>& values,
                   const Workload& workload) {
  return model::ToSeconds(StepModel(device, workload).Time(values).total());
}

// That what the fit determined is as in truth; returns how many these are.
int CheckRecovered(const Device& device,
                   const Fit& fit,
                   const std::vector<double>& truth) {
  REQUIRE(fit.parameters.size() == truth.size());
  int recovered = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    CAPTURE(fit.parameters[i].name);
    if (!fit.parameters[i].determined) continue;
    ++recovered;
    const auto& info = hardware::ParametersOf(device.kind)[i];
    const double off =
        ToFitScale(info, fit.parameters[i].value) - ToFitScale(info, truth[i]);
    CHECK(std::abs(off) < 0.01);
  }
  return recovered;
}

TEST_CASE("a fit recovers the parameters behind exact times") {
  const Device device = Processor();
  const std::vector<double> truth = Truth(device, 0.5);
  FitOptions options;
  options.model_sigma = 1e-4;  // exact: the prior then hardly pulls
  options.leave_one_out = false;
  const Fit fit =
      FitDevice(device, Synthetic(device, truth, BroadPlan(), 0.0), options);
  const int recovered = CheckRecovered(device, fit, truth);
  // All but the bf16 ratio, of which fp32 runs say nothing.
  CHECK(recovered == static_cast<int>(truth.size()) - 1);
  CHECK(fit.in_sample_error < 1e-4);
}

// Every kernel of the plan's steps by itself, as the model has it, but for the
// fixed cost of an operation, which is `alone`.
std::vector<KernelObservation> SyntheticKernels(
    const Device& device,
    std::vector<double> truth,
    double alone_s,
    const std::vector<Workload>& plan,
    double noise) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0.0, 1.0);
  truth[hardware::models::kCpuKernelOverhead] = alone_s;
  std::vector<KernelObservation> observations;
  for (const Workload& workload : plan) {
    const model::KernelList list = model::ExpandKernels(workload);
    for (const model::Segment& segment : list.segments) {
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
        KernelObservation observation;
        observation.label = "kernel " + std::to_string(observations.size());
        observation.device = device.reported_name;
        observation.workload = workload;
        observation.operation = kernel.name.text();
        observation.phase = segment.phase;
        observation.kernels = {kernel};
        observation.measured = KernelModel(device, observation).Time(truth) *
                               std::exp(noise * normal(random));
        observation.relative_noise = noise;
        observations.push_back(std::move(observation));
      }
    }
  }
  return observations;
}

TEST_CASE("kernels by themselves recover the parameters behind them") {
  const Device device = Processor();
  const std::vector<double> truth = Truth(device, 0.5);
  const auto kernels = SyntheticKernels(
      device,
      truth,
      2e-6,
      {Step("bert-base-uncased", 4, 64), Step("bert-mini", 2, 16)},
      0.0);
  FitOptions options;
  options.model_sigma = 1e-4;
  options.kernel_sigma = 1e-4;
  options.leave_one_out = false;
  const Fit fit = FitDevice(device, {}, kernels, {}, options);
  const int recovered = CheckRecovered(device, fit, truth);
  // Not: the bf16 ratio, what a step spends between its phases, and what an
  // operation costs within a step.
  CHECK(recovered == static_cast<int>(truth.size()) - 3);
  for (const auto at : {hardware::models::kCpuNarrowGemmRatio,
                        hardware::models::kCpuStepOverhead,
                        hardware::models::kCpuKernelOverhead}) {
    CHECK_FALSE(fit.parameters[at].determined);
  }
  REQUIRE(fit.alone.has_value());
  CHECK(fit.alone->name == "kernel_overhead");
  CHECK(fit.alone->value == Near(2e-6, 1e-2));
  CHECK(fit.alone->determined);
  const Predictor by_kernels(device, fit);
  for (const KernelObservation& kernel : kernels) {
    CHECK(by_kernels
              .KernelTimeAlone(
                  kernel.workload, kernel.phase, kernel.kernels.front())
              .base() == Near(kernel.measured.base(), 1e-2));
  }
  CHECK(fit.provenance.runs == 0);
  CHECK(fit.provenance.observations == 0);
  CHECK(fit.provenance.kernels == static_cast<int64_t>(kernels.size()));
  CHECK(fit.kernel_in_sample_error < 1e-3);
  // No step was measured: none is near to one, or as sure as if it were.
  const StepPrediction prediction =
      Predictor(device, fit).Predict(Step("bert-base-uncased", 4, 64));
  CHECK(prediction.grade == Grade::kExtrapolated);
  CHECK(prediction.log_sigma >= kDatasheetScatter);
}

TEST_CASE("kernels narrow what a few steps leave open, and no more") {
  const Device device = Processor();
  const std::vector<double> truth = Truth(device, 0.5);
  const std::vector<Workload> few = {Step("bert-base-uncased", 4, 64),
                                     Step("bert-base-uncased", 1, 16)};
  const auto steps = Synthetic(device, truth, few, 0.02);
  // Operations by themselves cost a fifth of what they do in a step.
  const double in_step_s = truth[hardware::models::kCpuKernelOverhead];
  const auto kernels =
      SyntheticKernels(device, truth, 0.2 * in_step_s, few, 0.1);
  const Fit alone = FitDevice(device, steps);
  const Fit both = FitDevice(device, steps, kernels, {});
  CHECK_FALSE(alone.alone.has_value());
  CHECK(both.alone->value < 0.5 * in_step_s);
  const auto json = nlohmann::json::parse(FitJson(both)).at("alone");
  CHECK(json.at("name") == "kernel_overhead");
  CHECK(json.at("unit") == "s");
  CHECK(json.at("value") == both.alone->value);
  CHECK(nlohmann::json::parse(FitJson(alone)).at("alone").is_null());
  CHECK(both.provenance.runs == 2);
  CHECK(both.provenance.observations == 8);
  CHECK(both.degrees_of_freedom <= alone.degrees_of_freedom);
  const auto error = [](const Fit& fit, size_t at) {
    return fit.parameters[at].standard_error;
  };
  for (const auto at : {hardware::models::kCpuVectorEfficiency,
                        hardware::models::kCpuBatchedGemmRatio,
                        hardware::models::kCpuRandomDraw}) {
    CAPTURE(both.parameters[at].name);
    CHECK(error(both, at) < 0.7 * error(alone, at));
  }
  // The cheap operations do not drag the steps' own cost after them.
  const FittedParameter& overhead =
      both.parameters[hardware::models::kCpuKernelOverhead];
  CHECK(overhead.value > 0.5 * in_step_s);
  // Left out in turn, each has an error of its own.
  CHECK(both.kernel_leave_one_out_error > 0.02);
  CHECK(both.kernel_leave_one_out_error < 0.3);
  int64_t left_out = 0;
  for (const FittedRun& run : both.runs) {
    if (run.quantity != Quantity::kKernel) continue;
    CHECK_FALSE(run.place.has_value());
    left_out += run.left_out ? 1 : 0;
  }
  CHECK(left_out == both.provenance.kernels);
  // What the steps' range says does not come from kernels.
  CHECK(both.range.max_tokens == 256);
}

TEST_CASE("with noise the truth lies within a few standard errors") {
  const Device device = Processor();
  const std::vector<double> truth = Truth(device, 0.5);
  FitOptions options;
  options.model_sigma = 0.01;
  options.leave_one_out = false;
  for (const unsigned seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    const Fit fit = FitDevice(
        device, Synthetic(device, truth, BroadPlan(), 0.02, seed), options);
    for (size_t i = 0; i < truth.size(); ++i) {
      CAPTURE(fit.parameters[i].name);
      if (!fit.parameters[i].determined) continue;
      const auto& info = hardware::ParametersOf(device.kind)[i];
      const double off = ToFitScale(info, fit.parameters[i].value) -
                         ToFitScale(info, truth[i]);
      CHECK(std::abs(off) < 4.0 * fit.parameters[i].standard_error);
    }
    // Unseen shapes come out far better than the noise of one run.
    for (const Workload& unseen : {Step("bert-small", 8, 100),
                                   Step("bert-base-uncased", 8, 96),
                                   Step("bert-tiny", 32, 48)}) {
      const double ratio = StepSeconds(device, fit.Values(), unseen) /
                           StepSeconds(device, truth, unseen);
      CHECK(std::abs(ratio - 1.0) < 0.04);
    }
  }
}

TEST_CASE("one outlier does not move the fit") {
  const Device device = Processor();
  const std::vector<double> truth = Truth(device, 0.5);
  std::vector<Observation> observations =
      Synthetic(device, truth, BroadPlan(), 0.005);
  observations[40].measured = observations[40].measured * 5.0;
  FitOptions options;
  options.model_sigma = 0.01;
  options.leave_one_out = false;
  const Fit fit = FitDevice(device, observations, options);
  const Workload unseen = Step("bert-base-uncased", 8, 96);
  const double ratio = StepSeconds(device, fit.Values(), unseen) /
                       StepSeconds(device, truth, unseen);
  CHECK(std::abs(ratio - 1.0) < 0.02);
}

TEST_CASE("what one-sided data leaves open stays at its prior, by name") {
  const Device device = Processor();
  // Large products only: nothing is said about small or half-width ones.
  const Fit fit = FitDevice(device,
                            Synthetic(device,
                                      Truth(device, 0.5),
                                      {Step("bert-base-uncased", 16, 128),
                                       Step("bert-base-uncased", 32, 128)},
                                      0.01));
  const auto find = [&](std::string_view name) {
    return *std::find_if(fit.parameters.begin(),
                         fit.parameters.end(),
                         [&](const auto& p) { return p.name == name; });
  };
  CHECK(find("gemm_efficiency").determined);
  const FittedParameter narrow = find("narrow_gemm_ratio");
  CHECK(!narrow.determined);
  CHECK(narrow.value == narrow.prior);
  CHECK(narrow.determined_by.find("bf16") != std::string::npos);
  const FittedParameter overhead = find("kernel_overhead");
  CHECK(!overhead.determined);
  CHECK(overhead.value == overhead.prior);
  CHECK(overhead.determined_by.find("bert-tiny") != std::string::npos);
}

TEST_CASE("each run left out in turn is predicted from the others") {
  const Device device = Processor();
  const std::vector<Observation> observations =
      Synthetic(device, Truth(device, 0.5), BroadPlan(), 0.02);
  const Fit fit = FitDevice(device, observations);
  CHECK(fit.provenance.runs == 27);
  CHECK(fit.provenance.observations == 108);
  REQUIRE(fit.runs.size() == 108);
  // On the whole what was not seen is met less well than what was.
  double seen = 0.0;
  double unseen = 0.0;
  for (const FittedRun& run : fit.runs) {
    REQUIRE(run.left_out.has_value());
    seen += std::pow(std::log(run.modelled / run.measured), 2);
    unseen += std::pow(std::log(*run.left_out / run.measured), 2);
  }
  CHECK(unseen > seen);
  CHECK(fit.leave_one_out_error > 0.0);
  CHECK(fit.leave_one_out_error < 0.05);

  // By hand: a run away, and the rest predicts it the same, but for its own
  // scatter. Where the rest determines other parameters, it is another fit.
  const auto determined = [](const Fit& of) {
    std::vector<bool> flags;
    for (const FittedParameter& parameter : of.parameters) {
      flags.push_back(parameter.determined);
    }
    return flags;
  };
  FitOptions options;
  options.leave_one_out = false;
  int compared = 0;
  for (const FittedRun& run : fit.runs) {
    if (run.quantity != Quantity::kStep) continue;
    std::vector<Observation> rest;
    const Observation* left_out = nullptr;
    for (const Observation& observation : observations) {
      if (observation.label != run.label) {
        rest.push_back(observation);
      } else if (observation.quantity == Quantity::kStep) {
        left_out = &observation;
      }
    }
    REQUIRE(left_out != nullptr);
    const Fit without = FitDevice(device, rest, options);
    if (determined(without) != determined(fit)) continue;
    CAPTURE(run.label);
    CHECK(
        model::ToSeconds(*run.left_out) ==
        Near(StepSeconds(device, without.Values(), left_out->workload), 1e-3));
    ++compared;
  }
  CHECK(compared >= 10);
}

TEST_CASE("fits are the same on every call") {
  const Device device = Processor();
  const std::vector<Observation> observations =
      Synthetic(device, Truth(device, 0.3), BroadPlan(), 0.02);
  const Fit first = FitDevice(device, observations);
  const Fit second = FitDevice(device, observations);
  CHECK(first.Values() == second.Values());
  CHECK(first.leave_one_out_error == second.leave_one_out_error);
}

TEST_CASE("fits are refused with one line") {
  const Device device = Processor();
  CHECK_THROWS_WITH_AS(FitDevice(device, {}),
                       "fit of cpu: expected measurements, got none",
                       InputError);
  std::vector<Observation> observations =
      Synthetic(device, Truth(device, 0.3), {Step("bert-tiny", 1, 16)}, 0.0);
  for (Observation& o : observations) o.device = "Other 5000";
  CHECK_THROWS_WITH_AS(FitDevice(device, observations),
                       "fit of cpu (Example 9000): expected measurements of "
                       "it, got 4 of Other 5000",
                       InputError);
  for (Observation& o : observations) {
    o.device = "Example 9000";
    o.device_count = 8;
  }
  CHECK_THROWS_WITH_AS(FitDevice(device, observations),
                       "fit of cpu: expected runs on one device, or over "
                       "links that are known, got 4 measurements over several",
                       InputError);
  for (Observation& o : observations) o.device_count = 1;
  observations[0].measured = model::Second(std::nan(""));
  CHECK_THROWS_WITH_AS(FitDevice(device, observations),
                       "run 1: expected a time above 0, got nan s",
                       InputError);
  observations =
      Synthetic(device, Truth(device, 0.3), {Step("bert-tiny", 1, 16)}, 0.0);
  observations[3].workload.work = model::Work::kForward;
  CHECK_THROWS_WITH_AS(FitDevice(device, observations),
                       "run 1: measured the optimizer of a step that has none",
                       InputError);
  observations =
      Synthetic(device, Truth(device, 0.3), {Step("bert-tiny", 1, 16)}, 0.0);
  observations[0].workload.precision = model::Precision::kFp16;
  CHECK_THROWS_WITH_AS(FitDevice(device, observations),
                       "run 1: precision: cpu has no fp16; it runs fp32, bf16",
                       InputError);
}

// Three batches of each stack that the host holds back, on a GPU.
TEST_CASE("a fit tells what a stack's launches take of the host") {
  const Device device =
      hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb");
  std::vector<Workload> plan;
  for (const auto fusion : {model::Fusion::kEager,
                            model::Fusion::kLightSeq,
                            model::Fusion::kCompiled}) {
    for (const int64_t batch : {1, 2, 32}) {
      Workload workload = Step("bert-mini", batch, 64);
      workload.precision = model::Precision::kFp16;
      workload.stack.fusion = fusion;
      plan.push_back(workload);
    }
  }
  std::vector<double> truth = Truth(device, 0.3);
  // A launch takes longer than a small kernel, whoever makes it.
  truth[hardware::models::kGpuLaunchCost] = 4e-5;
  truth[hardware::models::kGpuLibraryLaunchShare] = 0.8;
  truth[hardware::models::kGpuCompiledLaunchShare] = 0.5;
  FitOptions options;
  // Where a launch becomes longer than its kernel the times have corners, along
  // which a narrower one descends for more iterations than a fit has.
  options.model_sigma = 1e-3;
  options.robust_scale = 0;  // exact times have no outliers
  options.leave_one_out = false;
  const Fit fit =
      FitDevice(device, Synthetic(device, truth, plan, 0.0), options);
  for (const size_t i : {hardware::models::kGpuLaunchCost,
                         hardware::models::kGpuLibraryLaunchShare,
                         hardware::models::kGpuCompiledLaunchShare}) {
    CAPTURE(fit.parameters[i].name);
    CHECK(fit.parameters[i].determined);
    CHECK(fit.parameters[i].value == Near(truth[i], 0.01));
  }
}

TEST_CASE("the prior as a fit says so") {
  const Fit fit = PriorFit(Processor());
  const auto infos = hardware::ParametersOf(DeviceKind::kCpu);
  REQUIRE(fit.parameters.size() == infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    CHECK(fit.parameters[i].value == infos[i].prior);
    CHECK(!fit.parameters[i].determined);
  }
  CHECK(fit.provenance.source == "datasheet");
}

TEST_CASE("a fit starts and stays where the device's file says") {
  Device device = Processor();
  device.priors["step_overhead"] = 7e-3;
  const size_t overhead = hardware::models::kCpuStepOverhead;
  CHECK(PriorFit(device).parameters[overhead].value == 7e-3);
  // Passes without the step around them say nothing of it.
  std::vector<Observation> observations =
      Synthetic(device,
                Truth(device, 0.3),
                {Step("bert-tiny", 1, 16), Step("bert-base-uncased", 8, 128)},
                0.0);
  std::erase_if(observations, [](const Observation& o) {
    return o.quantity == Quantity::kStep;
  });
  const Fit fit = FitDevice(device, observations);
  const FittedParameter& parameter = fit.parameters[overhead];
  CHECK(parameter.name == "step_overhead");
  CHECK(!parameter.determined);
  CHECK(parameter.prior == 7e-3);
  CHECK(parameter.value == 7e-3);
}

}  // namespace
}  // namespace trainfare::calibrate
