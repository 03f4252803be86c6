#include "scenarios/job/exchange.h"

#include <doctest/doctest.h>

#include <vector>

#include "model/presets.h"
#include "scenarios/job/estimate.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"
#include "tests/scenarios/job/datasheet.h"
#include "tests/units.h"

namespace trainfare::scenarios {
namespace {

// Of 64 MiB, which is the third of four sizes.
CollectiveTime Of64MiB(const std::vector<CollectiveTime>& times,
                       StepCollective collective) {
  for (const CollectiveTime& one : times) {
    if (one.collective == collective && one.size == model::MiB(64)) return one;
  }
  FAIL("this collective is not among them");
  return {};
}

}  // namespace

// 7 steps of 3.4 us over 352.5 GB/s, 235/300 of NVLink's 450:
// 7 (3.4 us + 64 MiB / (8 x 352.5 GB/s)) = 190.38 us, and 7/8 of 64 MiB in them
// are 308.43 GB/s.
TEST_CASE("collectives of a sharded step by size, counted by hand") {
  const Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  const auto times =
      CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 8));
  REQUIRE(times.size() == 8);
  const CollectiveTime gather = Of64MiB(times, StepCollective::kAllGather);
  CHECK(gather.ranks == 8);
  CHECK(ToMicroseconds(gather.time) == Near(190.38, 1e-4));
  CHECK(gather.bus.base() == Near(308.43e9, 1e-4));
  CHECK(Of64MiB(times, StepCollective::kReduceScatter).time == gather.time);
}

TEST_CASE("copies sum over all of them, shards gather within one") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  scenario.workload.parallel.replicate = 2;
  const auto halves =
      CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 8));
  CHECK(Of64MiB(halves, StepCollective::kAllGather).ranks == 4);
  CHECK(Of64MiB(halves, StepCollective::kAllReduce).ranks == 2);
  // Nothing shared: the all-reduce that published times are predicted by.
  scenario.workload.parallel = {};
  const auto whole =
      CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 8));
  REQUIRE(whole.size() == 4);
  CHECK(Of64MiB(whole, StepCollective::kAllReduce).time ==
        AllReduceTimeOf(
            predictor, scenario.workload, ClusterOf(h100, 8), model::MiB(64))
            .time);
  CHECK(CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 1))
            .empty());
}

// Over NVLink as above: of 4 ranks of a sequence 3 (3.4 us + 64 MiB /
// 352.5 GB/s), and 3 times 64 MiB over each link.
TEST_CASE("keys and values go round ranks of a sequence, counted by hand") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  scenario.workload.parallel = {.context = 4};
  const auto times =
      CollectiveTimesOf(Datasheet(h100), scenario.workload, ClusterOf(h100, 8));
  const CollectiveTime round = Of64MiB(times, StepCollective::kRingPass);
  CHECK(round.ranks == 4);
  const double step = 3.4e-6 + 67'108'864.0 / 352.5e9;
  CHECK(round.time.base() == Near(3.0 * step, 1e-4));
  CHECK(round.bus.base() == Near(67'108'864.0 / step, 1e-4));
  // Gradients of all eight, whatever they divide.
  CHECK(Of64MiB(times, StepCollective::kAllReduce).ranks == 8);
}

// Of 8 ranks with an expert each, two of which a token meets: all with all as a
// gather; each row once, 7/8 of two copies of it leave its rank.
TEST_CASE("tokens go to experts of other ranks, counted by hand") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  model::Workload& workload = scenario.workload;
  workload.architecture = model::FindArchitecture("mixtral-8x7b");
  workload.parallel = {.expert = 8};
  const auto all = CollectiveTimesOf(predictor, workload, ClusterOf(h100, 8));
  const CollectiveTime to_all = Of64MiB(all, StepCollective::kAllToAll);
  CHECK(to_all.ranks == 8);
  CHECK(ToMicroseconds(to_all.time) == Near(190.38, 1e-4));
  CHECK(to_all.bus.base() == Near(308.43e9, 1e-4));
  workload.parallel.expert_exchange = model::ExpertExchange::kByHost;
  const auto by_host =
      CollectiveTimesOf(predictor, workload, ClusterOf(h100, 8));
  const CollectiveTime rows = Of64MiB(by_host, StepCollective::kRowsByHost);
  const double leaving = 2.0 * 7.0 / 8.0 * 67'108'864.0;
  const double time = 7 * 3.4e-6 + leaving / 352.5e9;
  CHECK(rows.time.base() == Near(time, 1e-4));
  CHECK(rows.bus.base() == Near(leaving / time, 1e-4));
}

}  // namespace trainfare::scenarios
