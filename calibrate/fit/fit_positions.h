#pragma once

#include <vector>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// The parameters of a fit in the scale in which they are fitted, in order.
std::vector<double> PositionsOf(const Fit& fit);

}  // namespace trainfare::calibrate
