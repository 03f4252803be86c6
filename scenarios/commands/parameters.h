#pragma once

// The free parameters of the models of devices.

#include <span>

#include "calibrate/fit/fit.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// A row a parameter of each kind: what is believed of it before any run, and
// how far the devices differ of which `fits` determine it.
Table Parameters(std::span<const calibrate::Fit> fits);

}  // namespace trainfare::scenarios
