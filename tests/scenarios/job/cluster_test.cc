#include "scenarios/job/cluster.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/error.h"
#include "model/units.h"
#include "tests/scenarios/job/datasheet.h"

namespace trainfare::scenarios {

TEST_CASE("a ring that an instance's own link could not be is not its ring") {
  calibrate::Fit fit = calibrate::PriorFit(A100());
  const hardware::Instance* found = nullptr;
  for (const auto& one : hardware::InstanceCatalog::Shipped().instances()) {
    if (one.device == A100().name && one.count >= 4) found = &one;
  }
  REQUIRE(found != nullptr);
  calibrate::RankFit group;
  group.transport = "nccl within a host";
  group.network.ranks = 4;
  group.network.alone.ring = {model::Microseconds(10), model::GBPerSecond(100)};
  group.network.beside = group.network.alone;
  fit.ranks = {group};
  const auto cluster = [&] {
    return ClusterOf(*found, 4, calibrate::Predictor(A100(), fit));
  };
  CHECK(cluster().ranks.has_value());
  fit.ranks[0].network.alone.ring.link = model::GBPerSecond(10000);
  CHECK_FALSE(cluster().ranks.has_value());
  fit.ranks[0] = group;
  fit.ranks[0].transport = "nccl between hosts";
  CHECK_FALSE(cluster().ranks.has_value());
}

TEST_CASE("two and four of every device") {
  for (const hardware::Device& device :
       hardware::DeviceCatalog::Shipped().devices()) {
    for (const int64_t devices : {2, 4}) {
      CAPTURE(device.name);
      const Cluster cluster = ClusterOf(device, devices);
      CHECK(cluster.devices == devices);
      CHECK((cluster.chips() == 1 || cluster.link.has_value()));
    }
  }
}

TEST_CASE("several devices need a link that is known") {
  hardware::Device lonely = A100();
  lonely.peer_bandwidth.reset();
  lonely.host_bandwidth.reset();
  CHECK_THROWS_AS(ClusterOf(lonely, 2), model::InputError);
  CHECK_NOTHROW(ClusterOf(lonely, 1));
  const hardware::Instance& one =
      hardware::InstanceCatalog::Shipped().Find("aws/g5.xlarge");
  CHECK_THROWS_WITH_AS(ClusterOf(one, 2),
                       "--devices: expected at most 1, the devices of "
                       "aws/g5.xlarge, got 2",
                       model::InputError);
}

}  // namespace trainfare::scenarios
