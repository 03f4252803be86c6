#pragma once

// What a fit is asked to do, and what it takes for granted of errors.

#include <cstdint>

#include "calibrate/fit/posterior.h"

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::calibrate {

struct FitOptions {
  // Also what a fit without each run makes of it.
  bool leave_one_out = true;
  // How many of them are left out so far; nullptr: nobody is told.
  hardware::ProgressLine* progress = nullptr;
  // Above this leverage a run that is left out is refitted (posterior.h); 0:
  // each is.
  double largest_leverage = kLargestLeverage;
  // Also name a run that would determine each parameter that is not: where the
  // fit is one of many on the way to an answer, nobody reads that.
  bool name_runs = true;
  // Scale of the robust (Cauchy) loss, in standard deviations.
  double robust_scale = 2.0;
  // Model error assumed for an observation besides its noise.
  double model_sigma = 0.05;
  // The same for a kernel by itself, before its residuals tell: errors that a
  // step averages over hundreds of kernels are all in one here.
  double kernel_sigma = 0.25;
};

// The scatter of a handful of residuals says little: FitOptions::model_sigma
// counts as this many more degrees of freedom.
inline constexpr int64_t kScatterPriorWeight = 3;
// Standard deviation of residuals with this sum of squares and these degrees of
// freedom, and of kScatterPriorWeight more that are as large as `assumed`.
double ScatterWithPrior(double squares, double freedom, double assumed);

}  // namespace trainfare::calibrate
