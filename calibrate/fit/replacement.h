#pragma once

// Which of two fits stays where there is room for one.

#include <optional>
#include <string>

#include "calibrate/fit/fit.h"

namespace trainfare::calibrate {

// Why `candidate` may not take the place of `old`, in words for the user;
// nullopt: it may. It may not where it is worse in one of these:
//
//   device    it is of another device
//   coverage  it lacks settings (precision, stack, work) or groups of ranks of
//             the old fit, or its runs span less than 3/4 of the old fit's span
//             of tokens, lengths or parameters, each in logarithms
//   runs      it has fewer than half as many runs, or kernels by themselves
//   error     its left-out error is larger than chance would have it:
//
//     e' > e (1 + 2 c sqrt(1 / n + 1 / n'))      c = 1.17
//
//   e, e'  left-out errors of the old and of the new fit, medians of absolute
//          relative errors; one that was not made (a single run) is worse
//   n, n'  their runs
//   c      standard error of such a median times sqrt(n), relative to it, for
//          normal errors: 1 / (4 z phi(z)), z = 0.6745
//
// Else a new calibration speaks of the machine as it is today. Check:
// tests/calibrate/fit/replacement_test.cc.
std::optional<std::string> WhyNotReplace(const Fit& old, const Fit& candidate);

enum class Replace {
  kIfNotWorse,  // as WhyNotReplace says
  kAlways,      // the user wants this one
};

// What became of a new fit.
struct Placed {
  // Where it is; empty: nowhere.
  std::string path;
  // What was kept of the fit that was there, and why; empty: there was none.
  std::string note;
  // The new fit is where it was to be.
  bool in_place = true;
};

// Throws InputError where the file at `path` is no fit, and none that cannot be
// read any more: somebody else's.
void RequireFitOrNone(const std::string& path);

// Writes `fit` to `path`. A fit that stands there and gives way is kept beside
// it by a name that is free: PATH.old, PATH.old.2 and so on. Where a fit stays
// the new one goes to PATH.new, of which the same holds, or nowhere when it is
// only `provisional`. One of those takes no fit's place that has more runs.
// Throws InputError when a file cannot be written; the old fit then stays.
Placed PlaceFit(const Fit& fit,
                const std::string& path,
                Replace replace,
                bool provisional);

}  // namespace trainfare::calibrate
