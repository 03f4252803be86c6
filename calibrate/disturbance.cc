#include "calibrate/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "calibrate/step_model.h"

namespace trainfare::calibrate {

double DisturbanceNoise(const MeasuredRun& run) {
  if (!run.disturbed) return 0.0;
  return std::max(run.waited_share.value_or(0.0), kLeastDisturbedNoise);
}

std::string DisturbanceWords(const MeasuredRun& run) {
  if (run.waited_share && *run.waited_share > 0.0) {
    return fmt::format(
        "its threads waited {:.0f} % of the time for a processor",
        100.0 * *run.waited_share);
  }
  return "other work on the machine, or a device held down";
}

KeptRuns WithoutWorseRepeats(std::vector<MeasuredRun> runs) {
  const auto key = [](const MeasuredRun& run) {
    return fmt::format(
        "{} x {} {}", run.device_count, run.device, Describe(run.workload));
  };
  std::map<std::string, double> least;
  for (const MeasuredRun& run : runs) {
    const double noise = DisturbanceNoise(run);
    const auto [place, is_new] = least.emplace(key(run), noise);
    if (!is_new) place->second = std::min(place->second, noise);
  }
  KeptRuns kept;
  for (MeasuredRun& run : runs) {
    if (DisturbanceNoise(run) > least.at(key(run))) {
      ++kept.left_out;
      continue;
    }
    kept.weighed_down += run.disturbed ? 1 : 0;
    kept.runs.push_back(std::move(run));
  }
  return kept;
}

}  // namespace trainfare::calibrate
