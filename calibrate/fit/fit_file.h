#pragma once

// A fit as a file of calibrate/fits/.

#include <string>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// Read and written as YAML; written beside and renamed. What is
// read is finite and within bounds, its covariance is one. Nothing is written
// that could not be read again. Both throw InputError.
Fit LoadFit(const std::string& path);
void SaveFit(const Fit& fit, const std::string& path);

}  // namespace trainfare::calibrate
