#pragma once

// Where a fit of a device starts, and how far the runs are believed there.

#include <vector>

#include "calibrate/fit/fit_data.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/problem.h"

namespace trainfare::calibrate {

struct FitStart {
  std::vector<double> positions;
  ModelErrors errors;
  // Minus the log of the probability of data and priors there, of runs that
  // scatter as the errors say; infinite where the solver does not converge.
  double cost = 0;
  double mean_log_sigma = 0;  // of the data
};

// What a parameter may say, as a share of what its prior does, and still be
// taken to say nothing; how many of its standard deviations off it is tried
// then.
inline constexpr double kSaysNothing = 0.01;
inline constexpr double kTriedSigmas = 3.0;
// What is found there is believed of no fewer runs than these, which tell it
// from one that was disturbed; by these odds, as a logarithm (20 to 1); and
// where the data scatter by no more than this share of what they did, since
// errors of a formula are alike and many runs are not as many reasons.
inline constexpr size_t kFewestRuns = 3;
inline constexpr double kClearOdds = 3.0;
inline constexpr double kClearlyLess = 0.7;

// The most probable start that is found from the priors on: by wide losses
// first, which set the model errors and `data`'s sigmas. The longer of two times
// hides the other: launches that take less than their kernels have no slope that
// would lead a solver to where they take more. So what has no effect where the
// priors lead is tried further up and down.
// Check: tests/calibrate/fit/fit_start_test.cc.
FitStart FindStart(const FitProblem& problem,
                   const FitOptions& options,
                   FitData& data);

}  // namespace trainfare::calibrate
