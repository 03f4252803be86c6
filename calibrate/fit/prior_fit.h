#pragma once

// What a fit is before anything was measured.

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// What the formulas leave unexplained on a device that nobody measured, as a
// standard deviation of log(time), besides the spread of its priors; and on one
// that was, away from what was measured: at other precisions, stacks and kinds
// of work, and at other shapes where few runs were made.
// An assumption until fits of several devices of a kind are compared
// (docs/models/calibration.md).
inline constexpr double kDatasheetScatter = 0.15;

// The prior itself as a fit without observations: datasheet only.
Fit PriorFit(const hardware::Device& device);

// A fit that has the names of its device and says nothing of it yet.
Fit EmptyFit(const hardware::Device& device);

}  // namespace trainfare::calibrate
