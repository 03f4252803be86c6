#include "calibrate/records/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace trainfare::calibrate {
namespace {

double NoiseOf(bool disturbed, const std::optional<double>& waited_share) {
  if (!disturbed) return 0.0;
  return std::max(waited_share.value_or(0.0), kLeastDisturbedNoise);
}

}  // namespace

double DisturbanceNoise(const MeasuredRun& run) {
  return NoiseOf(run.disturbed, run.waited_share);
}

double DisturbanceNoise(const MeasuredKernel& kernel) {
  return NoiseOf(kernel.disturbed, kernel.waited_share);
}

std::string DisturbanceWords(const MeasuredRun& run) {
  if (run.waited_share && *run.waited_share > 0.0) {
    return fmt::format(
        "its threads waited {:.0f} % of the time for a processor",
        100.0 * *run.waited_share);
  }
  return "other work on the machine, or a device held down";
}

}  // namespace trainfare::calibrate
