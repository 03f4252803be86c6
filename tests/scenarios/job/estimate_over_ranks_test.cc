#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "tests/near.h"
#include "tests/scenarios/job/datasheet.h"

namespace trainfare::scenarios {

TEST_CASE("ranks on one processor have its memory and its power between them") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.workload.precision = model::Precision::kFp32;
  scenario.workload.batch = 4;
  hardware::Device device = hardware::HostCpu();
  device.memory_capacity = model::GiB(64);
  device.max_power = model::Watt(200);
  calibrate::Fit fit = calibrate::PriorFit(device);
  calibrate::RankFit two;
  two.network.ranks = 2;
  two.network.alone.ring = {model::Microseconds(50), model::GBPerSecond(1e6)};
  two.network.beside = two.network.alone;
  two.ranks_per_device = 2;
  two.share = 0.5;
  fit.ranks = {two};
  fit.measured_device = device;
  const calibrate::Predictor predictor(device, fit);
  const JobEstimate one =
      EstimateJob(scenario, predictor, ClusterOf(predictor, 1));
  const JobEstimate both =
      EstimateJob(scenario, predictor, ClusterOf(predictor, 2));
  REQUIRE(both.fits());
  CHECK(both.capacity.base() == one.capacity.base() / 2);
  // Twice the work in twice the time, with next to nothing to send.
  CHECK(both.step.total() / one.step.total() == Near(2.0, 0.01));
  CHECK(both.mfu / one.mfu == Near(1.0, 0.01));
  REQUIRE(both.energy.has_value());
  CHECK(both.energy->base() / one.energy->base() ==
        Near(both.run.total() / one.run.total()));
}

// A step that ends with a sum over ranks waits for the longest of all.
TEST_CASE("ranks wait for the longest of their sequences") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.padding = {PaddingKind::kDynamic, 0, {}};
  scenario.workload.sequence_length = scenario.lengths->longest();
  scenario.workload.batch = 8;
  const auto job = [&](int64_t devices) {
    return EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), devices));
  };
  const JobEstimate one = job(1);
  const JobEstimate eight = job(8);
  CHECK(model::MeanLength(one.lengths) == model::MeanLength(one.own_lengths));
  // E[max of 64] of the data, as of one batch of 64.
  CHECK(model::MeanLength(eight.lengths) ==
        Near(model::MeanLength(scenario.BatchLengths(64)), 1e-5));
  CHECK(eight.run.tokens == Near(one.run.tokens, 0.02));
  // Over several micro-batches between two sums the lengths even out.
  scenario.workload.accumulation = 4;
  CHECK(model::MeanLength(job(8).lengths) ==
        model::MeanLength(job(8).own_lengths));
}

TEST_CASE("a forward pass over ranks that share parameters has an interval") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.workload.work = model::Work::kForward;
  scenario.workload.parallel.data = 2;
  scenario.workload.parallel.shard = model::Shard::kZero3;
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 2));
  CHECK(job.step.communication > model::Seconds<>());
  CHECK(std::isfinite(job.step.log_sigma));
  CHECK(std::isfinite(job.step.backward_log_sigma));
}

// One block computed again is a 24th of all of them.
TEST_CASE("blocks of two kinds hide what their times hide") {
  Scenario scenario = LoadScenario("squad_bert_large");
  const hardware::Device& l4 = hardware::DeviceCatalog::Shipped().Find("l4");
  const auto step = [&](int64_t blocks) {
    scenario.workload.gradient_checkpointing = blocks > 0;
    scenario.workload.checkpointed_blocks = blocks;
    return EstimateJob(scenario, Datasheet(l4), ClusterOf(l4, 8)).step;
  };
  const StepEstimate none = step(0);
  const StepEstimate one = step(1);
  CHECK(one.total() > none.total());
  CHECK(one.communication <= none.communication);
  CHECK(one.communication > step(24).communication);
}

// What is gathered is narrow, whatever trains.
TEST_CASE("a frozen block makes no gather wider") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  scenario.workload.stack.narrow_weights = false;
  scenario.workload.parallel.data = 8;
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const auto job = [&](int64_t frozen) {
    scenario.workload.trainable.frozen_layers = frozen;
    return EstimateJob(scenario, Datasheet(h100), ClusterOf(h100, 8));
  };
  REQUIRE(job(0).step.traffic.front().part == "forward");
  CHECK(job(1).step.traffic.front().sent == job(0).step.traffic.front().sent);
  CHECK(job(1).memory.total() < job(0).memory.total());
  CHECK(job(1).step.total() < job(0).step.total());
}

}  // namespace trainfare::scenarios
