#include "calibrate/fit/gross_misses.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

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

std::vector<FarApart> RunsFarApart(const Fit& fit) {
  using Run = std::tuple<std::string, Quantity, int64_t, int64_t>;
  std::map<Run, FarApart> of_run;
  for (const FittedRun& run : fit.runs) {
    FarApart& of = of_run[{
        run.workload, run.quantity, run.devices.value_or(1), run.hosts}];
    if (of.least == nullptr || run.measured < of.least->measured) {
      of.least = &run;
    }
    if (of.most == nullptr || of.most->measured < run.measured) of.most = &run;
  }
  std::vector<FarApart> apart;
  for (const auto& [run, of] : of_run) {
    if (of.most->measured / of.least->measured >= kFarApart) {
      apart.push_back(of);
    }
  }
  return apart;
}

}  // namespace trainfare::calibrate
