#pragma once

// Runs that a fit misses grossly, which its scatter, by medians, does not show:
// a unit, a batch or a setting that is wrong in their rows, or work that the
// formula does not have.

#include <vector>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// So many standard deviations of the fit's residuals and more. Of normal ones
// 1 in 370 is past 3.
inline constexpr double kGrossDeviations = 3.0;

struct GrossMiss {
  const FittedRun* run = nullptr;
  double error = 0;  // modelled / measured - 1
};

// Of the fit's chief runs those with
//
//   |log(modelled / measured)| > 3 s
//
//   s  scatter of the fit's residuals (Fit::residual_scatter)
//
// the worst first. They point into the fit. None of a fit that runs were added
// to later: others made its parameters (added_runs.h).
// Check: tests/calibrate/fit/gross_misses_test.cc.
std::vector<GrossMiss> GrossMisses(const Fit& fit);

// The fastest and the slowest run of one workload over as many devices and
// hosts, where these are ten times apart: no noise of two runs is. They point
// into the fit.
inline constexpr double kFarApart = 10.0;
struct FarApart {
  const FittedRun* least = nullptr;
  const FittedRun* most = nullptr;
};
std::vector<FarApart> RunsFarApart(const Fit& fit);

}  // namespace trainfare::calibrate
