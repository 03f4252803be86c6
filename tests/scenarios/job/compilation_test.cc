#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/error.h"
#include "model/units.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "tests/near.h"
#include "tests/scenarios/job/datasheet.h"

namespace trainfare::scenarios {

TEST_CASE("a static-shape device compiles every distinct length") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.padding = {PaddingKind::kDynamic, 0, {}};
  scenario.workload.sequence_length = scenario.lengths->longest();
  scenario.extras.compile_per_shape = model::Second(60.0 * 55.0);
  const hardware::Device& trainium =
      hardware::DeviceCatalog::Shipped().Find("trainium1");
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(trainium), ClusterOf(trainium, 1));
  // published/s001: 77 h, at most 84 distinct lengths; of batches of 64 fewer
  // show, training and evaluation apart.
  CHECK(job.run.distinct_shapes > 20);
  CHECK(job.run.distinct_shapes < 2 * 84);
  CHECK(job.Bottleneck().starts_with("compile-bound"));
  const JobEstimate gpu =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1));
  CHECK(gpu.run.compile == model::Seconds<>());
}

TEST_CASE("a warm cache compiles nothing, and lets lengths vary") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.padding = {PaddingKind::kDynamic, 0, {}};
  scenario.workload.sequence_length = scenario.lengths->longest();
  const hardware::Device& trainium =
      hardware::DeviceCatalog::Shipped().Find("trainium1");
  scenario.extras.compile_per_shape = model::Second(179.0);
  scenario.extras.warm_cache = true;
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(trainium), ClusterOf(trainium, 1));
  CHECK(job.compile_known);
  CHECK(job.run.distinct_shapes > 20);
  CHECK(job.run.compile == model::Seconds<>());
  // A few buckets need no budget.
  scenario.extras = {};
  scenario.padding = {PaddingKind::kBuckets, 64, {16, 32, 64}};
  scenario.workload.sequence_length = 64;
  const JobEstimate buckets =
      EstimateJob(scenario, Datasheet(trainium), ClusterOf(trainium, 1));
  CHECK_FALSE(buckets.compile_known);
  CHECK(buckets.run.distinct_shapes <= 2 * 3 * 2);
}

// docs/models/trainium.md, "Dynamic padding".
TEST_CASE("a compile time that nobody states widens the interval") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.PadTo(128);
  const hardware::Device& trainium =
      hardware::DeviceCatalog::Shipped().Find("trainium1_core");
  const auto answer = [&] {
    return EstimateJob(scenario, Datasheet(trainium), ClusterOf(trainium, 1));
  };
  // Graphs of fixed shapes: nothing, where a run before has compiled them, to
  // the longest of the kind.
  const JobEstimate fixed = answer();
  CHECK_FALSE(fixed.compile_known);
  CHECK(fixed.run.compile == model::Seconds<>());
  scenario.extras.warm_cache = true;
  const JobEstimate warm = answer();
  CHECK(fixed.run_low == warm.run_low);
  const auto above = [](const JobEstimate& job) {
    return ToSeconds(job.run_high - job.run.total());
  };
  CHECK(above(fixed) ==
        Near(std::hypot(600.0 * fixed.run.distinct_shapes, above(warm)), 1e-5));
  // New lengths: each once by 20 s, to every change by 10 min; sqrt(20 x 600)
  // is 109.5 s.
  scenario.extras.warm_cache = false;
  scenario.padding = {PaddingKind::kDynamic, 0, {}};
  scenario.workload.sequence_length = scenario.lengths->longest();
  const JobEstimate varies = answer();
  const double shapes = varies.run.distinct_shapes;
  CHECK(ToSeconds(varies.run.compile) ==
        Near(shapes * std::sqrt(12000.0), 1e-5));
  CHECK(varies.run.shape_changes > 5.0 * shapes);
  CHECK(varies.run_low > model::Second(20.0 * shapes));
  CHECK(varies.run_high > model::Second(600.0 * varies.run.shape_changes));
}

// docs/models/trainium.md, "Compiler": 48 sequences of 128 a core compile on 32
// GB, 64 do with swap, 128 do not even so.
TEST_CASE("a batch that the host cannot compile is refused with the reason") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.PadTo(128);
  const hardware::Device& trainium =
      hardware::DeviceCatalog::Shipped().Find("trainium1");
  hardware::Instance host =
      hardware::InstanceCatalog::Shipped().Find("aws/trn1.2xlarge");
  host.host_memory = model::GB(32);
  const auto of_core = [&](int64_t batch, double swap_gb) {
    scenario.workload.batch = 2 * batch;  // two cores
    scenario.extras.swap = model::GB(swap_gb);
    return EstimateJob(scenario, Datasheet(trainium), ClusterOf(host, 1));
  };
  const JobEstimate fits = of_core(48, 0);
  CHECK(fits.fits());
  REQUIRE(fits.compilation.has_value());
  // 4.51 MB x 48 x 128.
  CHECK(ToBytes(fits.compilation->memory) == Near(27.71e9, 1e-3));
  CHECK_FALSE(fits.compilation->swaps);
  const JobEstimate fails = of_core(64, 0);
  CHECK_FALSE(fails.fits());
  CHECK(fails.Obstacle() ==
        "does not fit the host's memory by 4.606 GiB: compiling it takes 34.41 "
        "GiB, there is no swap; use a smaller batch, or set run.swap or "
        "run.warm_cache");
  // 32 GB over 4.51 MB are 7095 tokens, 55 sequences a core.
  CHECK(fails.largest_batch == 110);
  CHECK(of_core(55, 0).fits());
  CHECK_FALSE(of_core(56, 0).fits());
  const JobEstimate swaps = of_core(64, 90);
  CHECK(swaps.fits());
  CHECK(swaps.compilation->swaps);
  CHECK_FALSE(of_core(128, 90).fits());
  // A device by itself has no host, a cache nothing to compile.
  scenario.workload.batch = 256;
  CHECK(EstimateJob(scenario, Datasheet(trainium), ClusterOf(trainium, 1))
            .fits());
  scenario.extras.warm_cache = true;
  CHECK(EstimateJob(scenario, Datasheet(trainium), ClusterOf(host, 1)).fits());
}

TEST_CASE("compiler levels scale what the cores do, on Trainium alone") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  const auto step = [&](const char* name, int64_t level) {
    scenario.workload.stack.compiler_level = level;
    const hardware::Device& device =
        hardware::DeviceCatalog::Shipped().Find(name);
    const JobEstimate job =
        EstimateJob(scenario, Datasheet(device), ClusterOf(device, 1));
    return ToSeconds(job.step.total() - job.step.other);
  };
  // 132.10, 127.39 and 126.30 s of the published ablation.
  CHECK(step("trainium1", 1) / step("trainium1", 2) == Near(132.10 / 127.39));
  CHECK(step("trainium1", 3) / step("trainium1", 2) == Near(126.30 / 127.39));
  CHECK(step("tpu_v3", 1) == step("tpu_v3", 3));
  // Nobody measured them on another core.
  CHECK(step("trainium2", 1) == step("trainium2", 3));
  // Stochastic rounding is part of writing a result.
  const double nearest = step("trainium1", 2);
  scenario.workload.stack.stochastic_rounding = true;
  CHECK(step("trainium1", 2) == nearest);
  CHECK_THROWS_AS(step("tpu_v3", 2), model::InputError);
}

}  // namespace trainfare::scenarios
