#pragma once

// What a fit is before anything was measured.

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// The prior itself as a fit without observations: datasheet only.
Fit PriorFit(const hardware::Device& device);

// A fit that has the names of its device and says nothing of it yet.
Fit EmptyFit(const hardware::Device& device);

}  // namespace trainfare::calibrate
