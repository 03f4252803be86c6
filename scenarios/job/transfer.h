#pragma once

// What fitted devices of a kind tell about one that was never measured.

#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::scenarios {

// A fit of `device` without any measurement of it. Of every parameter, what the
// fits of its kind say that determine it, shrunk by how much devices differ:
//
//   x_j = x_0 + m + f_a(j) + d_j + e_j
//
//   x_j, e_j  as fit j found it, in the scale of the fit, and its error
//   x_0       prior of the kind; m ~ N(0, s^2), s its width
//   f_a, d_j  of an architecture and of a device, N(0, .) each; their widths
//             are the likeliest of a grid
//
// The prior of the kind stands where fewer than two fits determine it, that of
// the device's own file always. `others` must not hold a fit of the device
// itself. Source: Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.4.
// Check: tests/scenarios/job/transfer_test.cc, docs/models/calibration.md.
calibrate::Fit TransferFit(const hardware::Device& device,
                           const std::vector<const calibrate::Fit*>& others);

}  // namespace trainfare::scenarios
