#include "calibrate/fit/parameter_spread.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "hardware/models/kind.h"
#include "tests/near.h"

namespace trainfare::calibrate {

// docs/models/calibration.md, "How much devices differ": two fits, e^0.1 above
// and e^0.2 below the prior with errors of 0.05, beside one that knows nothing.
TEST_CASE("the spread of a parameter over fits, by hand") {
  const hardware::Device device =
      hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  const size_t n = hardware::ParametersOf(device.kind).size();
  std::vector<Fit> fits(3, PriorFit(device));
  constexpr size_t kFirst = 0;
  for (const auto& [at, off] : {std::pair{0, 0.1}, std::pair{1, -0.2}}) {
    Fit& fit = fits[static_cast<size_t>(at)];
    fit.parameters[kFirst].value = fit.parameters[kFirst].prior * std::exp(off);
    fit.parameters[kFirst].determined = true;
    fit.covariance[kFirst * n + kFirst] = 0.05 * 0.05;
  }
  Fit other = fits[0];
  other.kind = hardware::DeviceKind::kSystolic;
  fits.push_back(other);
  const auto spreads = SpreadsOf(device.kind, fits);
  REQUIRE(spreads.size() == n);
  CHECK(spreads[kFirst].fits == 3);
  CHECK(spreads[kFirst].determined == 2);
  CHECK(spreads[kFirst].sigma == Near(0.1658, 1e-3));
  CHECK(spreads[1].fits == 3);
  CHECK(spreads[1].determined == 0);
  CHECK(spreads[1].sigma == 0.0);
  CHECK(SpreadsOf(hardware::DeviceKind::kCpu, fits).front().fits == 0);
}

// Widths that were estimated, not set.
TEST_CASE("the priors of GPUs are as wide as the fits that ship are apart") {
  ::setenv("TRAINFARE_FITS", "/dev/null/none", 1);  // those that ship alone
  const std::vector<Fit> fits = LoadFits().fits;
  ::unsetenv("TRAINFARE_FITS");
  const auto infos = hardware::ParametersOf(hardware::DeviceKind::kGpu);
  const auto spreads = SpreadsOf(hardware::DeviceKind::kGpu, fits);
  int compared = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    CAPTURE(infos[i].name);
    CHECK(spreads[i].fits >= 20);
    if (spreads[i].determined < 5) continue;
    ++compared;
    const auto n = static_cast<double>(spreads[i].determined);
    CHECK(spreads[i].sigma ==
          Near(infos[i].prior_sigma, 2.0 / std::sqrt(2 * n)));
  }
  CHECK(compared >= 3);
}

}  // namespace trainfare::calibrate
