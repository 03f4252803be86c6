#include "calibrate/fit/gross_misses.h"

#include <algorithm>
#include <cmath>

namespace trainfare::calibrate {

std::vector<GrossMiss> GrossMisses(const Fit& fit) {
  std::vector<GrossMiss> misses;
  const bool added =
      std::any_of(fit.runs.begin(), fit.runs.end(), [](const FittedRun& run) {
        return run.added;
      });
  if (added) return misses;
  for (const FittedRun* run : fit.ChiefRuns()) {
    const double ratio = run->modelled / run->measured;
    if (std::abs(std::log(ratio)) <= kGrossDeviations * fit.residual_scatter) {
      continue;
    }
    misses.push_back({run, ratio - 1.0});
  }
  std::stable_sort(
      misses.begin(), misses.end(), [](const GrossMiss& a, const GrossMiss& b) {
        return std::abs(std::log1p(a.error)) > std::abs(std::log1p(b.error));
      });
  return misses;
}

}  // namespace trainfare::calibrate
