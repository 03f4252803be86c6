#include "calibrate/session/earlier_runs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "calibrate/records/observation.h"
#include "hardware/files/text_file.h"
#include "model/error.h"

namespace trainfare::calibrate::internal {

EarlierRuns ReadEarlierRuns(const std::string& path,
                            const hardware::Device& device) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  EarlierRuns earlier;
  try {
    earlier.text = hardware::ReadTextFile(path, "measurements");
    Measurements read = ParseMeasurements(earlier.text, path);
    earlier.runs = std::move(read.runs);
    earlier.collectives = std::move(read.collectives);
  } catch (const model::InputError&) {
    return {};  // nothing that a new calibration would stumble over
  }
  const bool all_alike = std::all_of(
      earlier.runs.begin(), earlier.runs.end(), [&](const MeasuredRun& run) {
        return IsDevice(device, run.device) &&
               AreAlike(run, earlier.runs.front());
      });
  return all_alike && !earlier.runs.empty() ? earlier : EarlierRuns{};
}

bool AreAlike(const MeasuredRun& a, const MeasuredRun& b) {
  return a.host == b.host && a.software == b.software;
}

std::optional<Drift> DriftSince(const std::vector<MeasuredRun>& earlier,
                                const MeasuredRun& run) {
  std::vector<MeasuredRun> same = {run};
  const std::string asked = Describe(run.workload);
  for (const MeasuredRun& one : earlier) {
    if (one.device_count == run.device_count &&
        Describe(one.workload) == asked) {
      same.push_back(one);
    }
  }
  return GreatestDrift(same);
}

}  // namespace trainfare::calibrate::internal
