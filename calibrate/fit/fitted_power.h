#pragma once

// What a fit says of the power that a device draws (calibrate/fit/power.h).

#include <string>
#include <vector>

#include "model/units.h"

namespace trainfare::calibrate {

// How far a board may be off the energies of its generation, as the standard
// deviation of a logarithm: of a FLOP of products, and of the share of the
// limit that other work draws, which was read off one board. Assumptions.
inline constexpr double kProductsSigma = 0.1;
inline constexpr double kOthersSigma = 0.15;

// One observation of power as the fit sees it.
struct FittedPowerRun {
  std::string label;
  std::string workload;  // as Describe writes it
  model::Watts<> measured;
  model::Watts<> modelled;
};

// How the power of both kinds of work differs from the datasheet's. Errors are
// of the logarithms of the factors.
struct FittedPower {
  double products = 1;
  double products_error = 0;
  double others = 1;
  double others_error = 0;
  double correlation = 0;
  double scatter = 0;  // standard deviation of log(model / measured)
  std::vector<FittedPowerRun> runs;

  bool products_determined() const;
  bool others_determined() const;
};

}  // namespace trainfare::calibrate
