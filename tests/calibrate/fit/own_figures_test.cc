// Which measurements a fit takes (calibrate/fit/own_figures.h).

#include "calibrate/fit/own_figures.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

const hardware::Device& Named(const char* name) {
  return hardware::DeviceCatalog::Shipped().Find(name);
}

Observation OfCores(int64_t count, int64_t hosts) {
  Observation o;
  o.label = "run";
  o.device = "trainium1_core";
  o.device_count = count;
  o.hosts = hosts;
  o.workload.architecture = model::FindArchitecture("bert-base-uncased");
  o.workload.batch = 16;
  o.workload.precision = model::Precision::kBf16;
  o.workload.stack.fusion = model::Fusion::kCompiled;
  o.measured = model::Seconds<>(0.1);
  return o;
}

}  // namespace

TEST_CASE("what a core did stands for its chip, at as many times the batch") {
  CHECK(PartsOf(Named("trainium1"), "trainium1") == 1);
  CHECK(PartsOf(Named("trainium1"), "trainium1_core") == 2);
  CHECK(PartsOf(Named("trainium1_core"), "trainium1") == 0);
  CHECK(PartsOf(Named("inferentia2"), "trainium1_core") == 0);
  // Each die of a package has its own graph.
  CHECK(PartsOf(Named("mi250x_package"), "mi250x") == 0);

  const std::vector<Observation> measured = {OfCores(1, 1), OfCores(32, 1)};
  EngineProfile profile;
  profile.label = "profile";
  profile.device = "trainium1_core";
  profile.workload = measured.front().workload;
  profile.devices = 2;
  profile.traffic = model::GB(4);
  const OwnFigures core =
      OfDevice(Named("trainium1_core"), measured, {}, {profile});
  REQUIRE(core.steps.size() == 2);
  CHECK(core.steps[0].observation.workload.batch == 16);
  CHECK(core.steps[1].joined->devices == 32);
  CHECK(core.profiles.at(0).devices == 2);

  CHECK(core.left_out.empty());

  const OwnFigures chip = OfDevice(Named("trainium1"), measured, {}, {profile});
  REQUIRE(chip.steps.size() == 2);
  const Observation& one = chip.steps[0].observation;
  CHECK(one.workload.batch == 32);
  CHECK(one.device_count == 1);
  CHECK(one.run_devices == 0);  // a part, which stands for all of it
  CHECK(one.measured == measured[0].measured);
  CHECK_FALSE(chip.steps[0].joined.has_value());
  const Step& many = chip.steps[1];
  CHECK(many.observation.workload.batch == 32);
  CHECK(many.observation.device_count == 16);
  CHECK(many.joined->devices == 16);
  // Its figures are of the engines of one core.
  CHECK(chip.profiles.at(0).workload.batch == 32);
  CHECK(chip.profiles.at(0).devices == 1);
  CHECK(*chip.profiles.at(0).traffic == model::GB(4));
}

TEST_CASE("chips in part, and measurements of others, are refused") {
  CHECK_THROWS_WITH_AS(
      OfDevice(Named("trainium1"), {OfCores(3, 1)}, {}, {}),
      "fit of trainium1: expected runs on one device, or over links that are "
      "known, got 1 measurement over several",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      OfDevice(Named("inferentia2"), {OfCores(1, 1)}, {}, {}),
      "fit of inferentia2: expected measurements of it, got 1 of "
      "trainium1_core",
      model::InputError);
  CHECK_THROWS_WITH_AS(OfDevice(Named("trainium1"), {}, {}, {}),
                       "fit of trainium1: expected measurements, got none",
                       model::InputError);
}

}  // namespace trainfare::calibrate
