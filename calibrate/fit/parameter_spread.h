#pragma once

// How much the devices of a kind differ in each free parameter of its model, by
// the fits there are: what the width of its prior says of a device that nobody
// measured.

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device_kind.h"

namespace trainfare::calibrate {

struct ParameterSpread {
  int64_t fits = 0;        // of the kind
  int64_t determined = 0;  // of these, whose runs narrow it
  // Standard deviation over devices of those, in the scale of the fit (of the
  // logarithm, or of a share); 0 without any.
  double sigma = 0;
};

// In the order of ParametersOf(kind).
//
//   sigma^2 = mean over fits that determine it of (x - x_0)^2 + v
//
//   x    the parameter as fitted, x_0 its prior
//   v    its variance by the fit
//
// the maximisation step of expectation maximisation for devices that scatter
// normally about the prior (Dempster, Laird & Rubin 1977): where it gives the
// width that the fits were made with, that is the likeliest. Of n fits its
// standard error is a share 1 / sqrt(2 n) of it.
std::vector<ParameterSpread> SpreadsOf(hardware::DeviceKind kind,
                                       std::span<const Fit> fits);

}  // namespace trainfare::calibrate
