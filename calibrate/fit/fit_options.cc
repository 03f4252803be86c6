#include "calibrate/fit/fit_options.h"

#include <cmath>

namespace trainfare::calibrate {

double ScatterWithPrior(double squares, double freedom, double assumed) {
  const auto weight = static_cast<double>(kScatterPriorWeight);
  return std::sqrt((squares + weight * assumed * assumed) / (freedom + weight));
}

}  // namespace trainfare::calibrate
