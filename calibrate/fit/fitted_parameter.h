#pragma once

// One free parameter of a device's model as a fit has it.

#include <string>

namespace trainfare::calibrate {

struct FittedParameter {
  std::string name;
  double value = 0;
  double standard_error = 0;  // in the transformed scale (relative for logs)
  double prior = 0;
  // Whether the data narrowed it; else it stands at its prior.
  bool determined = false;
  std::string determined_by;  // the run that would, when it is not
};

}  // namespace trainfare::calibrate
