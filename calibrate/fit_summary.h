#pragma once

#include <string>

#include "calibrate/fit.h"

namespace trainfare::calibrate {

// What stands in a fit, for people: parameters with their standard errors, what
// is not determined and by which run it would be, errors.
std::string FitSummary(const Fit& fit);
// The same as one JSON object.
std::string FitJson(const Fit& fit);

}  // namespace trainfare::calibrate
