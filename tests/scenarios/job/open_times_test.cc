#include "scenarios/job/open_times.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/instance.h"
#include "model/architecture.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

using model::Seconds;

Cluster OneDevice() { return {}; }

Cluster Rented() {
  return ClusterOf(hardware::InstanceCatalog::Shipped().Find("aws/g4dn.xlarge"),
                   1);
}

const hardware::Device& Gpu() {
  return hardware::DeviceCatalog::Shipped().Find("a100_sxm4_40gb");
}

// docs/guide/scenarios.md: 0.75 billion parameters are read in a second.
TEST_CASE("a start-up that nobody states: the process, and renting") {
  Scenario scenario = LoadScenario("llama_8b_lora");
  const auto parameters = static_cast<double>(
      model::TotalParameters(scenario.workload.architecture));
  const double process = 10.0 + parameters / 0.75e9;
  CHECK(process == Near(20.7, 0.001));
  const OpenTime here = StartUpTime(scenario, Gpu(), OneDevice());
  CHECK(ToSeconds(here.usual) == Near(process, 1e-5));
  CHECK(ToSeconds(here.low) == Near(process / 2.4, 1e-5));
  CHECK(ToSeconds(here.high) == Near(process * 2.4, 1e-5));

  // From 1 to 10 min, so sqrt(60 x 600) = 189.7 s; both are open by themselves.
  const OpenTime rented = StartUpTime(scenario, Gpu(), Rented());
  const double renting = std::sqrt(60.0 * 600.0);
  CHECK(ToSeconds(rented.usual) == Near(process + renting, 1e-5));
  CHECK(ToSeconds(rented.usual - rented.low) ==
        Near(std::hypot(renting - 60.0, process - process / 2.4), 1e-5));
  CHECK(ToSeconds(rented.high - rented.usual) ==
        Near(std::hypot(600.0 - renting, process * 1.4), 1e-5));

  scenario.extras.start_up = Seconds<>();
  CHECK(StartUpTime(scenario, Gpu(), Rented()).high == Seconds<>());
}

// From 5 s to 2 min, so sqrt(5 x 120) = 24.5 s.
TEST_CASE("a stack that compiles does so when it starts, unless it did") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  REQUIRE(scenario.workload.stack.fusion == model::Fusion::kCompiled);
  const auto usual = [&](const char* device) {
    return ToSeconds(
        StartUpTime(scenario,
                    hardware::DeviceCatalog::Shipped().Find(device),
                    OneDevice())
            .usual);
  };
  const double compiled = usual("l4");
  // Of fixed shapes another term speaks.
  const double process = usual("trainium1");
  CHECK(compiled - process == Near(24.5, 0.001));
  scenario.extras.compile_per_shape = Seconds<>(7);
  CHECK(usual("l4") - process == Near(7, 1e-5));
  scenario.extras.warm_cache = true;
  CHECK(usual("l4") == process);
  scenario.extras.warm_cache = false;
  scenario.workload.stack.fusion = model::Fusion::kEager;
  CHECK(usual("l4") == process);
}

TEST_CASE("a checkpoint that nobody states is in the interval alone") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.extras.start_up = Seconds<>();
  const OpenTime open = CheckpointTime(scenario, OneDevice());
  CHECK(open.usual == Seconds<>());
  // 109.5 million parameters with AdamW's two tensors, 4 bytes each, 12 of them
  // at 131 MB/s: 10 s.
  CHECK(ToSeconds(open.high) == Near(10.0, 0.01));
  Cluster two = OneDevice();
  two.hosts = 2;
  CHECK(ToSeconds(CheckpointTime(scenario, two).high) ==
        Near(0.5 * ToSeconds(open.high), 1e-5));

  const hardware::Device& a100 =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_40gb");
  const auto answer = [&] {
    return EstimateJob(scenario, calibrate::Predictor(a100), OneDevice());
  };
  const JobEstimate unstated = answer();
  scenario.extras.checkpoint = Seconds<>();
  const JobEstimate none = answer();
  CHECK(unstated.run.total() == none.run.total());
  CHECK(unstated.run_low == none.run_low);
  const auto above = [](const JobEstimate& job) {
    return ToSeconds(job.run_high - job.run.total());
  };
  CHECK(above(unstated) ==
        Near(std::hypot(
                 above(none),
                 static_cast<double>(scenario.epochs) * ToSeconds(open.high)),
             1e-5));

  scenario.extras.checkpoint.reset();
  scenario.workload.work = model::Work::kForward;
  CHECK(CheckpointTime(scenario, OneDevice()).high == Seconds<>());
}

TEST_CASE("what is assumed of a start-up is said") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  const hardware::Device& a100 =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_40gb");
  const auto words = [&] {
    return StartUpWords(
        EstimateJob(scenario, calibrate::Predictor(a100), OneDevice()));
  };
  CHECK(words() == "; 34.64 s of start-up assumed, --start-up 0 leaves it out");
  scenario.extras.start_up = Seconds<>();
  CHECK(words().empty());
}

}  // namespace
}  // namespace trainfare::scenarios
