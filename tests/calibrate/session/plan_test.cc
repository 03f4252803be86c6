#include "calibrate/session/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_positions.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"
#include "model/validate.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;

Device PlannedProcessor() {
  Device device;
  device.name = "cpu";
  device.reported_name = "Example 9000";
  device.kind = hardware::DeviceKind::kCpu;
  device.memory_capacity = model::GiB(24);
  device.memory_bandwidth = model::GBPerSecond(30);
  device.on_chip_memory = model::MiB(32);
  device.peak.fp32 = model::TFlopPerSecond(0.2);
  device.peak.bf16 = model::TFlopPerSecond(0.4);
  device.cores = 2;
  return device;
}

bool IsPowerOfTwo(int64_t number) {
  return std::has_single_bit(static_cast<uint64_t>(number));
}

PlanOptions Broad(const Device& device) {
  PlanOptions options;
  options.candidates = CandidateRuns(device, {model::Precision::kFp32});
  return options;
}

// The first runs as a calibration on this device would do them: each is
// measured (exactly as the priors say) and fitted before the next is chosen.
std::vector<PlannedRun> FirstRuns(const Device& device,
                                  int count,
                                  const PlanOptions& plan) {
  Planner planner(device, plan);
  const Fit prior = PriorFit(device);
  Fit known = prior;
  std::vector<Observation> observations;
  std::vector<PlannedRun> runs;
  FitOptions options;
  options.leave_one_out = false;
  while (static_cast<int>(runs.size()) < count) {
    const auto next = planner.Next(known, model::Second(20.0));
    if (!next) break;
    planner.Done(next->workload);
    const auto time = StepModel(device, next->workload).Time(prior.Values());
    for (const Quantity quantity : {Quantity::kStep,
                                    Quantity::kForward,
                                    Quantity::kBackward,
                                    Quantity::kOptimizer}) {
      Observation observation;
      observation.label = Describe(next->workload);
      observation.device = device.name;
      observation.workload = next->workload;
      observation.quantity = quantity;
      observation.measured = PartOf(time, quantity);
      observations.push_back(std::move(observation));
    }
    known = FitDevice(device, observations, options);
    runs.push_back(*next);
  }
  return runs;
}

std::vector<PlannedRun> FirstRuns(const Device& device, int count) {
  return FirstRuns(device, count, Broad(device));
}

TEST_CASE("candidates are presets within their positions and the grid") {
  const std::vector<model::Workload> runs =
      CandidateRuns(PlannedProcessor(),
                    {model::Precision::kFp32,
                     model::Precision::kFp16,  // not on this device
                     model::Precision::kBf16});
  CHECK(runs.size() > 100);
  std::set<std::string> distinct;
  size_t round = 0;
  size_t odd = 0;
  for (const model::Workload& run : runs) {
    CHECK_NOTHROW(model::Validate(run));
    CHECK(run.precision != model::Precision::kFp16);
    CHECK(run.tokens() <= 4096);
    distinct.insert(Describe(run));
    (IsPowerOfTwo(run.sequence_length) ? round : odd) += 1;
  }
  // Lengths as people choose them, and as dynamic padding makes them.
  CHECK(odd > runs.size() / 3);
  CHECK(round > runs.size() / 3);
  CHECK(distinct.size() == runs.size());
  CHECK_THROWS_AS(CandidateRuns(PlannedProcessor(), {}, {"bert-tinny"}),
                  model::InputError);
}

TEST_CASE("the plan is the same every time") {
  const std::vector<PlannedRun> first = FirstRuns(PlannedProcessor(), 6);
  const std::vector<PlannedRun> second = FirstRuns(PlannedProcessor(), 6);
  REQUIRE(first.size() == 6);
  REQUIRE(second.size() == 6);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(Describe(first[i].workload) == Describe(second[i].workload));
    CHECK(first[i].steps == second[i].steps);
  }
}

TEST_CASE("the plan has runs on both sides of the ridge, and several models") {
  const Device device = PlannedProcessor();
  const std::vector<PlannedRun> runs = FirstRuns(device, 12);
  REQUIRE(runs.size() == 12);
  // A run lies on the side of what most of its forward pass waits for.
  bool compute = false;
  bool other = false;
  std::set<std::string> models;
  for (const PlannedRun& run : runs) {
    const auto forward =
        StepModel(device, run.workload).Time(PriorFit(device).Values()).forward;
    const bool matrix = forward.matrix > forward.total() * 0.5;
    (matrix ? compute : other) = true;
    models.insert(run.workload.architecture.name);
  }
  CHECK(compute);
  CHECK(other);
  CHECK(models.size() >= 2);
}

TEST_CASE("models that the trainer has not are refused before any run") {
  CHECK_THROWS_WITH_AS(
      PlanHere(PlannedProcessor(),
               {model::Precision::kFp32},
               {"bert-tiny", "t5-small"}),
      "model t5-small: the trainer has the blocks of BERT, GPT-2, Transformer "
      "base and big, and of decoders like Llama's",
      model::InputError);
}

// A GPU's grid has both stacks of BERT; of Llama the trainer has one there.
TEST_CASE("a GPU's runs are in stacks that the trainer has of a model") {
  const Device& gpu = hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  const auto fused = [&](const std::string& name) {
    int64_t count = 0;
    for (const model::Workload& run :
         RunsHere(gpu, {model::Precision::kBf16}, {name})) {
      if (run.stack.fusion == model::Fusion::kFused) ++count;
    }
    return count;
  };
  CHECK(fused("bert-base-uncased") > 0);
  CHECK(fused("llama-3.2-1b") == 0);
  CHECK(!RunsHere(gpu, {model::Precision::kBf16}, {"llama-3.2-1b"}).empty());
}

TEST_CASE("no run twice, none longer than allowed, and then none") {
  const Device device = PlannedProcessor();
  Planner planner(device, Broad(device));
  const Fit prior = PriorFit(device);
  const model::Seconds<> longest = model::Second(0.5);
  std::set<std::string> seen;
  while (const auto next = planner.Next(prior, longest)) {
    CHECK(next->expected_duration <= longest);
    CHECK(next->steps >= 5);
    CHECK(seen.insert(Describe(next->workload)).second);
    planner.Done(next->workload);
  }
  CHECK(seen.size() > 5);
  CHECK(!planner.Next(prior, model::Microseconds(1.0)).has_value());
}

TEST_CASE("runs shrink the expected interval, the most useful first") {
  const Device device = PlannedProcessor();
  Planner planner(device, Broad(device));
  const Fit prior = PriorFit(device);
  double before = planner.ExpectedInterval(prior);
  for (int i = 0; i < 5; ++i) {
    const auto next = planner.Next(prior, model::Second(20.0));
    REQUIRE(next.has_value());
    planner.Done(next->workload);
    const double after = planner.ExpectedInterval(prior);
    CHECK(after < before);
    before = after;
  }
}

// docs/models/calibration.md. A factor of four apart in batch, without the
// parameters' part: D = 0.1^2 each, 0.01 exp(-1/2) = 0.00607 between. A run
// with noise of 2 % leaves 0.01 - 0.00607^2 / 0.0104 = 0.00646: 10 %
// becomes 8.0 %.
TEST_CASE("what one run leaves unknown nearby, by hand") {
  const Device device = PlannedProcessor();
  PlanOptions options;
  model::Workload run;
  run.architecture = model::FindArchitecture("bert-tiny");
  run.sequence_length = 64;
  run.batch = 2;
  model::Workload asked = run;
  asked.batch = 8;
  options.candidates = {run};
  options.scenarios = {asked};
  Planner planner(device, options);
  Fit exact = PriorFit(device);
  std::fill(exact.covariance.begin(), exact.covariance.end(), 0.0);
  CHECK(planner.ExpectedInterval(exact) == Near(1.28155 * 0.1, 1e-4));
  planner.Done(run);
  CHECK(planner.ExpectedInterval(exact) ==
        Near(1.28155 * std::sqrt(0.0064627), 1e-4));
}

TEST_CASE("what is asked by default is what people fine-tune") {
  const Device device = PlannedProcessor();
  PlanOptions options = Broad(device);
  options.scenarios = DefaultScenarios(device, {model::Precision::kFp32});
  const auto large = std::count_if(
      options.scenarios.begin(), options.scenarios.end(), [](const auto& run) {
        return run.architecture.name == "bert-large-uncased";
      });
  CHECK(large > 40);
  const auto runs_of_larger = [&](const PlanOptions& plan) {
    const std::vector<PlannedRun> runs = FirstRuns(device, 30, plan);
    return std::count_if(runs.begin(), runs.end(), [](const PlannedRun& run) {
      return run.workload.architecture.name == "bert-medium" ||
             run.workload.architecture.name == "bert-base-uncased";
    });
  };
  // More of the runs than where all sizes are asked alike.
  CHECK(runs_of_larger(options) > runs_of_larger(Broad(device)));
}

TEST_CASE("on a GPU the plan has both precisions and both stacks") {
  const Device& device =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  PlanOptions options;
  for (const model::Workload& run :
       RunsHere(device,
                {model::Precision::kFp32, model::Precision::kBf16},
                {"bert-base-uncased"})) {
    if ((run.batch == 8 || run.batch == 64) &&
        (run.sequence_length == 32 || run.sequence_length == 128)) {
      options.candidates.push_back(run);
    }
  }
  REQUIRE(options.candidates.size() == 16);
  std::set<std::string> settings;
  for (const PlannedRun& run : FirstRuns(device, 8, options)) {
    settings.insert(SettingsOf(run.workload));
  }
  CHECK(settings.size() == 4);
}

TEST_CASE("a plan made ahead has the runs of the planner, in its budget") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const auto plan = [&] {
    return PlanHere(device, {model::Precision::kFp32, model::Precision::kBf16});
  };
  const std::vector<PlannedRun> runs =
      PlanAhead(device, plan(), model::Second(60.0));
  REQUIRE(runs.size() > 10);
  model::Seconds<> sum;
  std::set<std::string> seen;
  for (const PlannedRun& run : runs) {
    CHECK(seen.insert(Describe(run.workload)).second);
    CHECK(run.expected_duration <= model::Second(12.0));
    CHECK(run.longest_duration() >= model::Second(2.0));
    sum += run.expected_duration;
  }
  CHECK(sum <= model::Second(60.0));
  // Each is what the planner asks for at that point, nothing measured but what
  // runs before it would have told.
  Planner planner(device, plan());
  Fit known = PriorFit(device);
  for (size_t i = 0; i < 3; ++i) {
    const auto next = planner.Next(known, model::Second(12.0));
    REQUIRE(next);
    CHECK(Describe(next->workload) == Describe(runs[i].workload));
    known = planner.After(known, next->workload);
    planner.Done(next->workload);
  }
}

// A run tells of its own time all but the model's error and its noise, and no
// more of any other.
TEST_CASE("what a run will tell of the parameters, by hand") {
  const Device device = PlannedProcessor();
  PlanOptions plan;
  plan.candidates = {CandidateRuns(device, {model::Precision::kFp32}).at(0)};
  const model::Workload& run = plan.candidates[0];
  const Planner planner(device, plan);
  const Fit before = PriorFit(device);
  const Fit after = planner.After(before, run);
  const StepModel model(device, run);
  const auto variance = [&](const Fit& fit) {
    const LogTimes times = model.Evaluate(PositionsOf(fit));
    const auto g = times.GradientOf(Quantity::kStep);
    const size_t count = fit.Values().size();
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        sum += g[i] * fit.covariance[i * count + j] * g[j];
      }
    }
    return sum;
  };
  const double v = variance(before);
  // Model error of 10 %, noise of 2 %.
  const double left = v - v * v / (v + 0.01 + 0.0004);
  CHECK(variance(after) == Near(left));
}

// A machine that is slower than expected gets through half of a plan. What that
// half has to tell is what products and memory do, not only its host: of a GPU
// whose host takes half as long again for a launch, and whose products and
// memory are not as believed.
TEST_CASE("half of a plan made ahead tells what products do") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("h200_sxm");
  const std::vector<PlannedRun> runs = PlanAhead(
      device,
      PlanHere(device, {model::Precision::kFp32, model::Precision::kBf16}),
      model::Second(160.0));
  const Fit prior = PriorFit(device);
  std::vector<double> truth = prior.Values();
  const auto parameter = [&](std::string_view name) -> double& {
    const auto infos = hardware::ParametersOf(device.kind);
    for (size_t i = 0; i < infos.size(); ++i) {
      if (infos[i].name == name) return truth[i];
    }
    FAIL("no such parameter");
    return truth[0];
  };
  parameter("launch_cost") *= 1.5;
  parameter("gemm_efficiency_fp32") *= 1.1;
  parameter("gemm_efficiency_half") *= 0.85;
  parameter("bandwidth_efficiency") *= 0.8;
  std::vector<Observation> observations;
  model::Seconds<> spent;
  for (const PlannedRun& run : runs) {
    const auto time = StepModel(device, run.workload).Time(truth);
    spent += PartOf(time, Quantity::kStep) *
             static_cast<double>(run.steps + run.warmup);
    if (spent > model::Second(60.0)) break;
    for (const Quantity quantity :
         {Quantity::kStep, Quantity::kForward, Quantity::kBackward}) {
      Observation observation;
      observation.label = Describe(run.workload);
      observation.device = device.name;
      observation.workload = run.workload;
      observation.quantity = quantity;
      observation.measured = PartOf(time, quantity);
      observations.push_back(std::move(observation));
    }
  }
  FitOptions options;
  options.leave_one_out = false;
  const Fit fit = FitDevice(device, observations, options);
  for (const model::Precision precision :
       {model::Precision::kFp32, model::Precision::kBf16}) {
    model::Workload large;
    large.architecture = model::FindArchitecture("bert-large-uncased");
    large.optimizer.implementation = model::OptimizerImplementation::kFused;
    large.precision = precision;
    large.batch = 96;
    large.sequence_length = 384;
    const StepModel model(device, large);
    const double wanted =
        model::ToSeconds(PartOf(model.Time(truth), Quantity::kStep));
    const double got =
        model::ToSeconds(PartOf(model.Time(fit.Values()), Quantity::kStep));
    CAPTURE(model::ToText(precision));
    CHECK(got == Near(wanted, 0.03));
  }
}

TEST_CASE("the plan serves the scenarios that are asked") {
  // Only short sequences of the small model are asked: no reason to run the
  // large one.
  const Device device = PlannedProcessor();
  PlanOptions options = Broad(device);
  for (const model::Workload& run : options.candidates) {
    if (run.architecture.name == "bert-tiny" && run.sequence_length <= 32) {
      options.scenarios.push_back(run);
    }
  }
  Planner planner(device, options);
  const Fit prior = PriorFit(device);
  for (int i = 0; i < 4; ++i) {
    const auto next = planner.Next(prior, model::Second(20.0));
    REQUIRE(next.has_value());
    planner.Done(next->workload);
    CHECK(next->workload.architecture.name == "bert-tiny");
  }
}

}  // namespace
}  // namespace trainfare::calibrate
