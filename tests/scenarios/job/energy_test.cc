#include "scenarios/job/energy.h"

#include <doctest/doctest.h>

#include <cmath>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/units.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "tests/near.h"
#include "tests/scenarios/job/datasheet.h"

namespace trainfare::scenarios {

TEST_CASE(
    "energy is mean power over the run, a bound where rest is not known") {
  const Scenario scenario = LoadScenario("emotion_bert_base");
  hardware::Device device = A100();
  REQUIRE(device.idle_power.has_value());
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(device), ClusterOf(device, 1));
  REQUIRE(job.energy.has_value());
  CHECK_FALSE(job.energy_is_bound);
  const double power_w = ToJoules(*job.energy) / ToSeconds(job.run.total());
  CHECK(power_w > ToWatts(*device.idle_power));
  CHECK(power_w < ToWatts(*device.max_power));
  device.idle_power.reset();
  const JobEstimate bound =
      EstimateJob(scenario, Datasheet(device), ClusterOf(device, 1));
  CHECK(bound.energy_is_bound);
  CHECK(ToJoules(*bound.energy) ==
        Near(400.0 * ToSeconds(bound.run.total()), 1e-5));
  CHECK(*job.energy < *bound.energy);
  device.max_power.reset();
  CHECK_FALSE(EstimateJob(scenario, Datasheet(device), ClusterOf(device, 1))
                  .energy.has_value());
}

// What is rented beside the device that trains rests, and draws that: 7 x 61 W
// is more than the eighth at work.
TEST_CASE("idle devices of a rented instance count in energy") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.extras.start_up = model::Seconds<>();
  const hardware::Instance& instance =
      hardware::InstanceCatalog::Shipped().Find("aws/p4d.24xlarge");
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(instance.device);
  REQUIRE(device.idle_power.has_value());
  const JobEstimate rented =
      EstimateJob(scenario, Datasheet(device), ClusterOf(instance, 1));
  const JobEstimate alone =
      EstimateJob(scenario, Datasheet(device), ClusterOf(device, 1));
  CHECK(rented.idle_devices == 7);
  CHECK(alone.idle_devices == 0);
  const double rest =
      7.0 * ToWatts(*device.idle_power) * ToSeconds(alone.run.total());
  CHECK(ToJoules(*rented.energy - *alone.energy) == Near(rest));
  CHECK(ClusterOf(instance, 8).idle_devices == 0);
}

// Where nobody knows what a board draws at rest, its limit bounds it.
TEST_CASE("a bound of energy has the idle devices in it") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.extras.start_up = model::Seconds<>();
  const hardware::Instance& instance =
      hardware::InstanceCatalog::Shipped().Find("aws/p6-b200.48xlarge");
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(instance.device);
  REQUIRE_FALSE(device.idle_power.has_value());
  const JobEstimate rented =
      EstimateJob(scenario, Datasheet(device), ClusterOf(instance, 1));
  REQUIRE(rented.energy_is_bound);
  CHECK(ToJoules(*rented.energy) ==
        Near(8.0 * ToWatts(*device.max_power) * ToSeconds(rented.run.total())));
}

// docs/models/energy.md: power is known to 10 %, and so to 13.7 % with 80 %.
TEST_CASE("an energy has an interval, of its power and its time") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  const JobEstimate job =
      EstimateJob(scenario, Datasheet(A100()), ClusterOf(A100(), 1));
  const auto range = EnergyRangeOf(job);
  REQUIRE(range.has_value());
  const double rest = ToWatts(*A100().idle_power);
  const double resting = rest * ToSeconds(job.run.start_up);
  const double of_steps = ToJoules(*job.energy) - resting;
  const double power = 1.2815515655446004 * 0.1;
  const double time = std::log(job.step.high_factor);
  CHECK(ToJoules(range->high - *job.energy) ==
        Near(std::hypot(of_steps * (std::exp(std::hypot(power, time)) - 1.0),
                        rest * ToSeconds(job.open_above)),
             1e-5));
  CHECK(range->low < *job.energy);
  // Minutes that nothing runs in are no more than the board at rest.
  JobEstimate open = job;
  open.open_above = model::Second(3600.0);
  CHECK(ToJoules(EnergyRangeOf(open)->high) <
        ToJoules(range->high) + rest * 3600.0 + 1.0);
  // Never less than at rest in the shortest run: of steps that draw no more
  // than a board at rest, and where open times pass all that is counted.
  JobEstimate light = job;
  light.energy = light.resting_power * light.run.total();
  CHECK(ToJoules(EnergyRangeOf(light)->low) ==
        Near(rest * ToSeconds(light.run_low), 1e-5));
  CHECK(EnergyRangeOf(light)->high > *light.energy);
  JobEstimate open_below = light;
  open_below.open_below = model::Second(1e6);
  open_below.run_low = model::Seconds<>();
  CHECK(EnergyRangeOf(open_below)->low == model::Joules<>());
  JobEstimate bound = job;
  bound.energy_is_bound = true;
  CHECK_FALSE(EnergyRangeOf(bound).has_value());
}

}  // namespace trainfare::scenarios
