#pragma once

#include <string>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// What stands in a fit as one JSON object: parameters with their standard
// errors, what is not determined and by which run it would be, the rings
// between ranks, errors.
std::string FitJson(const Fit& fit);

}  // namespace trainfare::calibrate
