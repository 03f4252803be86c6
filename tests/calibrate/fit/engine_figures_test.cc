// What profiles of engines say as residuals (calibrate/fit/engine_figures.h).

#include "calibrate/fit/engine_figures.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/parameter.h"
#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

const hardware::Device& Core() {
  return hardware::DeviceCatalog::Shipped().Find("trainium1_core");
}

model::Workload Bert() {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = 8;
  w.sequence_length = 128;
  w.precision = model::Precision::kBf16;
  w.stack.fusion = model::Fusion::kCompiled;
  return w;
}

std::vector<double> PriorValues() {
  std::vector<double> values;
  for (const auto& info : hardware::ParametersOf(Core())) {
    values.push_back(info.prior);
  }
  return values;
}

// The device's parameters at their priors in the scale of the fit, and one more
// of what joins devices.
std::vector<double> Positions() {
  std::vector<double> positions;
  for (const auto& info : hardware::ParametersOf(Core())) {
    positions.push_back(info.transform == hardware::Transform::kLog
                            ? std::log(info.prior)
                            : info.prior);
  }
  positions.push_back(0.3);
  return positions;
}

}  // namespace

TEST_CASE("a profile as the model has it leaves nothing over") {
  const auto modelled = EnginesOf(Core(), Bert(), PriorValues());
  REQUIRE(modelled.has_value());
  CHECK(*modelled->tensor > 0);
  CHECK(*modelled->tensor < 1);
  CHECK(EngineFigureCount(*modelled) == 6);
  const auto block = EngineResiduals(Core(), *modelled);
  REQUIRE(block->size() == 6);
  std::vector<double> residuals(6);
  REQUIRE(block->Evaluate(Positions(), residuals, {}));
  for (const double residual : residuals) CHECK(std::abs(residual) < 1e-9);

  // Shares in their sigma, bytes relatively.
  EngineProfile seen = *modelled;
  seen.tensor = *modelled->tensor - 2 * kEngineShareSigma;
  seen.spill = *modelled->spill * std::exp(-kEngineBytesSigma);
  REQUIRE(EngineResiduals(Core(), seen)->Evaluate(Positions(), residuals, {}));
  CHECK(residuals.front() == Near(2));
  CHECK(residuals.back() == Near(1));
}

TEST_CASE("slopes of a profile's residuals are their differences") {
  EngineProfile seen = *EnginesOf(Core(), Bert(), PriorValues());
  seen.vector.reset();
  const auto block = EngineResiduals(Core(), seen);
  const size_t size = block->size();
  CHECK(size == 5);
  const std::vector<double> at = Positions();
  std::vector<double> residuals(size);
  std::vector<double> slopes(size * at.size());
  REQUIRE(block->Evaluate(at, residuals, slopes));
  constexpr double kStep = 1e-6;
  for (size_t j = 0; j < at.size(); ++j) {
    std::vector<double> moved = at;
    moved[j] += kStep;
    std::vector<double> above(size);
    REQUIRE(block->Evaluate(moved, above, {}));
    for (size_t i = 0; i < size; ++i) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(slopes[i * at.size() + j] ==
            Near((above[i] - residuals[i]) / kStep, 1e-3));
    }
  }
}

TEST_CASE("devices without engines have no busy shares") {
  const auto& gpu = hardware::DeviceCatalog::Shipped().Find("t4");
  CHECK_FALSE(EnginesOf(gpu, Bert(), {}).has_value());
  CHECK(EngineFigureCount(EngineProfile{}) == 0);
}

}  // namespace trainfare::calibrate
