#include "scenarios/commands/faster_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/validate.h"
#include "scenarios/commands/setting_changes.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

// Of the time of a step; less is lost among other things.
constexpr double kWorthSaying = 0.03;
constexpr size_t kMostSaid = 2;

// Whether a job has room where another has it, or takes no more of it.
bool HasRoomBeside(const JobEstimate& changed, const JobEstimate& job) {
  if (!changed.fits()) return false;
  const MemoryRange range = MemoryRangeOf(changed.memory, changed.capacity);
  return range.high <= changed.capacity ||
         range.high <= MemoryRangeOf(job.memory, job.capacity).high;
}

// The share of the time of a sample's step that the changed job saves; nullopt:
// none worth saying, or there is no such job, or it may not fit. Most settings
// save nothing, which a step says without its run.
std::optional<double> SavedBy(const Scenario& changed,
                              const PredictionTarget& target,
                              const JobEstimate& job,
                              DeviceMemo& memo) {
  try {
    model::Validate(changed.workload);
    const JobEstimate step =
        EstimateJob(changed, memo, target.cluster, Detail::kStep);
    if (!HasRoomBeside(step, job)) return std::nullopt;
    const double saved = 1.0 - job.samples_per_second / step.samples_per_second;
    if (saved < kWorthSaying) return std::nullopt;
    const JobEstimate trial =
        EstimateJob(changed, memo, target.cluster, Detail::kTimes);
    if (trial.run.total() >= job.run.total()) return std::nullopt;
    return saved;
  } catch (const model::InputError&) {
    return std::nullopt;  // not of this model or device
  }
}

}  // namespace

std::optional<Note> FasterNote(const PredictionTarget& target,
                               const Scenario& scenario,
                               const JobEstimate& job) {
  const TimedJob asked{target.predictor.device(), target.cluster.devices, job};
  DeviceMemo memo(target.predictor, scenario.source);
  std::vector<std::pair<double, std::string>> savings;
  const auto attempt = [&](SettingChange setting) {
    Scenario changed = scenario;
    std::string words = setting(asked, changed);
    if (words.empty()) return;
    const auto saved = SavedBy(changed, target, job, memo);
    if (saved) savings.emplace_back(*saved, std::move(words));
  };
  for (const SettingChange setting : FasterSettings()) attempt(setting);
  for (const SettingChange setting : LargerSteps()) attempt(setting);
  if (savings.empty()) return std::nullopt;
  std::stable_sort(
      savings.begin(), savings.end(), [](const auto& a, const auto& b) {
        return a.first > b.first;
      });
  savings.resize(std::min(savings.size(), kMostSaid));
  std::vector<std::string> said;
  for (const auto& [saved, words] : savings) {
    said.push_back(fmt::format("{} ({:.0f} % less{})",
                               words,
                               100.0 * saved,
                               said.empty() ? " time a sample" : ""));
  }
  return Note(fmt::format("steps are faster with {}{}",
                          fmt::join(said, " or "),
                          said.size() > 1 ? ", each by itself" : ""));
}

}  // namespace trainfare::scenarios
