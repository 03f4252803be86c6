#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hardware/files/unit_text.h"
#include "scenarios/commands/job_notes.h"
#include "scenarios/commands/recommendation_report.h"
#include "scenarios/job/open_times.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatMoney;
using hardware::FormatTime;

std::string Answer(const std::vector<Candidate>& candidates,
                   const Scenario& scenario,
                   const RecommendOptions& options) {
  if (candidates.empty() || !candidates.front().chosen) {
    return fmt::format("{}: no instance fits and meets the limits",
                       scenario.title);
  }
  const Candidate& best = candidates.front();
  const bool with_batch =
      options.ChoosesBatch() || IsCut(best, scenario, options);
  return fmt::format(
      "{}: {}{} is {} ({} x {}{}{}): {}, {} (80 % intervals {} .. {}, {} .. "
      "{}{})",
      scenario.title,
      best.by_measurement ? "measured, in a tie for " : "",
      Superlative(options.objective),
      best.Name(),
      best.devices,
      best.device,
      with_batch                   ? ", batch "
      : options.ChoosesPrecision() ? ", "
                                   : "",
      ChosenOf(best, with_batch, options),
      FormatMoney(best.cost->usual),
      FormatTime(best.job->run.total()),
      FormatMoney(best.cost->low),
      FormatMoney(best.cost->high),
      FormatTime(best.job->run_low),
      FormatTime(best.job->run_high),
      StartUpWords(*best.job));
}

// How sure the choice is among the others.
std::string TieLine(const std::vector<Candidate>& candidates, size_t ties) {
  const auto viable = std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.viable();
      });
  return fmt::format(
      "a tie: {} of {} others lie within its 80 % interval", ties, viable - 1);
}

std::string BatchWords(const Scenario& scenario,
                       const RecommendOptions& options) {
  if (options.global_batch) {
    return fmt::format("global batch {}", *options.global_batch);
  }
  if (options.ChoosesBatch()) {
    return fmt::format("batch {} a device",
                       fmt::join(options.overrides.batches, " or "));
  }
  return fmt::format("batch {} a device", scenario.workload.batch);
}

std::string SettingsLine(const Scenario& scenario,
                         const RecommendOptions& options,
                         size_t candidates) {
  const model::Workload& workload = scenario.workload;
  return fmt::format(
      "{}, {}, length {}, {}, {}, {}{}; {}",
      workload.architecture.name,
      BatchWords(scenario, options),
      Describe(scenario.padding),
      options.ChoosesPrecision()
          ? fmt::format("{}", fmt::join(options.overrides.precisions, " or "))
          : std::string(model::ToText(workload.precision)),
      DescribeUpdate(workload),
      DescribeStack(workload),
      DropoutWords(workload),
      hardware::Plural(static_cast<int64_t>(candidates), "candidate"));
}

}  // namespace

std::vector<std::string> Headline(const std::vector<Candidate>& candidates,
                                  const Scenario& scenario,
                                  const RecommendOptions& options,
                                  const Overview& overview) {
  std::vector<std::string> lines = {
      Answer(candidates, scenario, options),
      SettingsLine(scenario, options, candidates.size())};
  if (overview.ties > 0) lines.push_back(TieLine(candidates, overview.ties));
  if (overview.calibration) {
    lines.push_back(Words(*overview.calibration, candidates.front()));
  }
  return lines;
}

}  // namespace trainfare::scenarios
