#include "calibrate/fit/fitted_power.h"

#include "calibrate/fit/posterior.h"

namespace trainfare::calibrate {

bool FittedPower::products_determined() const {
  return products_error < kDeterminedBelow * kProductsSigma;
}

bool FittedPower::others_determined() const {
  return others_error < kDeterminedBelow * kOthersSigma;
}

}  // namespace trainfare::calibrate
