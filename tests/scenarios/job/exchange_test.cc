#include "scenarios/job/exchange.h"

#include <doctest/doctest.h>

#include <vector>

#include "model/collective.h"
#include "scenarios/job/estimate.h"
#include "tests/scenarios/hermetic.h"
#include "tests/scenarios/job/datasheet.h"
#include "tests/units.h"

namespace trainfare::scenarios {
namespace {

using model::Collective;

// Of 64 MiB, which is the third of four sizes.
CollectiveTime Of64MiB(const std::vector<CollectiveTime>& times,
                       Collective collective) {
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
  const CollectiveTime gather = Of64MiB(times, Collective::kAllGather);
  CHECK(gather.ranks == 8);
  CHECK(ToMicroseconds(gather.time) == doctest::Approx(190.38).epsilon(1e-4));
  CHECK(gather.bus.base() == doctest::Approx(308.43e9).epsilon(1e-4));
  CHECK(Of64MiB(times, Collective::kReduceScatter).time == gather.time);
}

TEST_CASE("copies sum over all of them, shards gather within one") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  scenario.workload.parallel.replicate = 2;
  const auto halves =
      CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 8));
  CHECK(Of64MiB(halves, Collective::kAllGather).ranks == 4);
  CHECK(Of64MiB(halves, Collective::kAllReduce).ranks == 2);
  // Nothing shared: the all-reduce that published times are predicted by.
  scenario.workload.parallel = {};
  const auto whole =
      CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 8));
  REQUIRE(whole.size() == 4);
  CHECK(Of64MiB(whole, Collective::kAllReduce).time ==
        AllReduceTimeOf(
            predictor, scenario.workload, ClusterOf(h100, 8), model::MiB(64))
            .time);
  CHECK(CollectiveTimesOf(predictor, scenario.workload, ClusterOf(h100, 1))
            .empty());
}

}  // namespace trainfare::scenarios
