#pragma once

// What fitted devices of a kind tell about one that was never measured.

#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::scenarios {

// A fit of `device` without any measurement of it: every parameter at the
// median of those fits of its kind that determine it, as wide as they spread;
// the prior of the kind where fewer than two do. `others` must not hold a fit
// of the device itself.
calibrate::Fit TransferFit(const hardware::Device& device,
                           const std::vector<const calibrate::Fit*>& others);

}  // namespace trainfare::scenarios
