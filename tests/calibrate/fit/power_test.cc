// The power of a device from the energies of its runs.

#include "calibrate/fit/power.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using model::Precision;
using model::Watt;
using model::Watts;

const Device& V100Board() {
  return DeviceCatalog::Shipped().Find("v100_pcie_16gb");
}

model::Workload Job(Precision precision, int64_t batch) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = 512;
  w.precision = precision;
  return w;
}

// What a board draws whose factors are these, by the shares of the fit.
PowerObservation Drawn(const model::Workload& workload,
                       const FittedPower& truth) {
  const auto step =
      Predictor(V100Board(), PriorFit(V100Board())).Time(workload);
  const auto shares = hardware::BusySharesOf(step);
  PowerObservation observation;
  observation.label = "drawn";
  observation.device = V100Board().name;
  observation.workload = workload;
  observation.measured =
      MeanPowerOf(V100Board(), workload, shares.products, shares.others, &truth)
          ->mean;
  observation.relative_noise = 0.001;
  return observation;
}

}  // namespace

TEST_CASE("a board's power is found again from its runs") {
  FittedPower truth;
  truth.products = 0.92;
  truth.others = 0.9;
  std::vector<PowerObservation> runs;
  for (const int64_t batch : {1, 2, 4, 8, 16, 32, 48, 64}) {
    runs.push_back(Drawn(Job(Precision::kFp32, batch), truth));
    runs.push_back(Drawn(Job(Precision::kFp16, batch), truth));
  }
  const auto power = FitPower(V100Board(), PriorFit(V100Board()), runs);
  REQUIRE(power.has_value());
  // The priors hold a little.
  CHECK(power->products == Near(0.92, 0.02));
  CHECK(power->others == Near(0.9, 0.02));
  CHECK(power->products_determined());
  CHECK(power->others_determined());
  CHECK(power->runs.size() == runs.size());
}

TEST_CASE("power without a run of the device is the datasheet's") {
  CHECK_FALSE(FitPower(V100Board(), PriorFit(V100Board()), {}).has_value());
  PowerObservation other = Drawn(Job(Precision::kFp32, 16), {});
  other.device = "t4";
  CHECK_FALSE(
      FitPower(V100Board(), PriorFit(V100Board()), {other}).has_value());
}

TEST_CASE("power stays between rest and limit, and errors widen it") {
  FittedPower most;
  most.products = 9.0;
  most.others = 9.0;
  const auto limit =
      MeanPowerOf(V100Board(), Job(Precision::kFp32, 8), 0.7, 0.3, &most);
  CHECK(limit->mean.base() == Near(V100Board().max_power->base(), 1e-5));
  const auto rest =
      MeanPowerOf(V100Board(), Job(Precision::kFp32, 8), 0.0, 0.0, &most);
  CHECK(rest->mean.base() == Near(V100Board().idle_power->base(), 1e-5));
  FittedPower sure;
  sure.scatter = 0.05;
  FittedPower unsure = sure;
  unsure.products_error = 0.1;
  CHECK(MeanPowerOf(V100Board(), Job(Precision::kFp32, 8), 0.7, 0.2, &unsure)
            ->log_sigma >
        MeanPowerOf(V100Board(), Job(Precision::kFp32, 8), 0.7, 0.2, &sure)
            ->log_sigma);
}

}  // namespace trainfare::calibrate
