#pragma once

// What a device draws, fitted to the energies of measured runs
// (docs/models/energy.md).

#include <optional>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fitted_power.h"
#include "calibrate/records/power_observation.h"
#include "hardware/catalog/device.h"
#include "model/energy.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Mean power with how sure one is of it, as the standard deviation of its
// logarithm.
struct PowerAnswer {
  model::Watts<> mean;
  double log_sigma = 0;
};

// The device's mean power where `products` and `others` are the shares of its
// time. Of a kind that tells them not apart, the line between rest and limit;
// nullopt where rest or limit is not known. `fitted`: nullptr where nobody
// measured it.
std::optional<PowerAnswer> MeanPowerOf(const hardware::Device& device,
                                       const model::Workload& workload,
                                       double products,
                                       double others,
                                       const FittedPower* fitted);

// Least squares over the logarithms of the two factors, with priors; shares of
// time by the step of `fit`. nullopt where no run of the device's has a power,
// or its kind does not tell products from other work.
//
//   r_i = log(P(f_p P_p, f_o P_o, u_i) / P_i) / sigma_i
//
// No level passes the limit or falls below rest. Check:
// tests/calibrate/fit/power_test.cc.
std::optional<FittedPower> FitPower(const hardware::Device& device,
                                    const Fit& fit,
                                    const std::vector<PowerObservation>& runs);

}  // namespace trainfare::calibrate
