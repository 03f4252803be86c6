#include "calibrate/records/repeated_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "calibrate/records/disturbance.h"
#include "calibrate/records/measured_observations.h"

namespace trainfare::calibrate {
namespace {

// What repeats of a run have in common.
std::string PointOf(const MeasuredRun& run) {
  return fmt::format(
      "{} x {} {}", run.device_count, run.device, Describe(run.workload));
}

}  // namespace

KeptRuns WithoutWorseRepeats(std::vector<MeasuredRun> runs) {
  std::map<std::string, double> least;
  for (const MeasuredRun& run : runs) {
    const double noise = DisturbanceNoise(run);
    const auto [place, is_new] = least.emplace(PointOf(run), noise);
    if (!is_new) place->second = std::min(place->second, noise);
  }
  KeptRuns kept;
  for (MeasuredRun& run : runs) {
    if (DisturbanceNoise(run) > least.at(PointOf(run))) {
      ++kept.left_out;
      continue;
    }
    kept.weighed_down += run.disturbed ? 1 : 0;
    kept.runs.push_back(std::move(run));
  }
  return kept;
}

std::optional<Drift> GreatestDrift(const std::vector<MeasuredRun>& runs) {
  std::map<std::string, Drift> drifts;
  std::optional<Drift> greatest;
  for (const MeasuredRun& run : runs) {
    if (run.disturbed) continue;
    const model::Seconds<> step = ObservationsOf(run).front().measured;
    const auto [place, is_new] =
        drifts.emplace(PointOf(run), Drift{run.workload, step, step});
    if (is_new) continue;
    Drift& drift = place->second;
    drift.least = std::min(drift.least, step);
    drift.greatest = std::max(drift.greatest, step);
    if (!greatest || drift.share() >= greatest->share()) greatest = drift;
  }
  return greatest;
}

}  // namespace trainfare::calibrate
