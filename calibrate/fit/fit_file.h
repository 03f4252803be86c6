#pragma once

// A fit as a file of calibrate/fits/.

#include <string>
#include <string_view>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// Read and written as YAML; written beside and renamed. What is
// read is finite and within bounds, its covariance is one. Nothing is written
// that could not be read again. Both throw InputError.
Fit LoadFit(const std::string& path);
void SaveFit(const Fit& fit, const std::string& path);

// Whether a text is of a fit, also of one that cannot be read any more: a line
// of it names a device, and another the kind.
bool IsFitText(std::string_view text);

}  // namespace trainfare::calibrate
