#include "scenarios/commands/nearest_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "calibrate/fit/discrepancy.h"
#include "hardware/files/unit_text.h"

namespace trainfare::scenarios {
namespace {

// As many as a reader compares with the question at one look.
constexpr size_t kShownRuns = 5;

std::string ErrorText(const calibrate::FittedRun& run) {
  return fmt::format("{:+.1f} %", 100.0 * (*run.left_out / run.measured - 1.0));
}

std::vector<Cell> RowOf(const calibrate::FittedRun& run) {
  const calibrate::Place& place = *run.place;
  return {run.label,
          fmt::format("{} x {}", place.layers, place.hidden),
          fmt::format("{}", place.batch),
          fmt::format("{}", place.sequence_length),
          place.settings,
          run.devices ? fmt::format("{}", *run.devices) : "-",
          std::string(calibrate::ToText(run.quantity)),
          hardware::FormatTime(run.measured),
          run.left_out ? hardware::FormatTime(*run.left_out) : "-",
          run.left_out ? ErrorText(run) : "-"};
}

}  // namespace

std::vector<const calibrate::FittedRun*> NearestRuns(
    const calibrate::Fit& fit, const model::Workload& workload, size_t most) {
  const calibrate::ErrorPoint here =
      calibrate::ErrorPointOf(calibrate::PlaceOf(workload));
  std::vector<const calibrate::FittedRun*> runs;
  for (const calibrate::FittedRun* run : fit.ChiefRuns()) {
    if (run->place) runs.push_back(run);
  }
  const auto likeness = [&](const calibrate::FittedRun* run) {
    return calibrate::ErrorCorrelation(here,
                                       calibrate::ErrorPointOf(*run->place));
  };
  std::stable_sort(
      runs.begin(),
      runs.end(),
      [&](const calibrate::FittedRun* a, const calibrate::FittedRun* b) {
        return likeness(a) > likeness(b);
      });
  runs.resize(std::min(most, runs.size()));
  return runs;
}

std::optional<Table> NearestRunTable(const calibrate::Fit& fit,
                                     const model::Workload& workload) {
  const auto runs = NearestRuns(fit, workload, kShownRuns);
  if (runs.empty()) return std::nullopt;
  Table table;
  table.title = "measured nearest to this, and what the fit without it says";
  table.columns = {{"run", "run", Align::kLeft},
                   {"layers", "layers", Align::kRight},
                   {"batch", "batch", Align::kRight},
                   {"length", "sequence_length", Align::kRight},
                   {"settings", "settings", Align::kLeft},
                   {"devices", "devices", Align::kRight},
                   {"figure", "quantity", Align::kLeft},
                   {"measured", "measured", Align::kRight},
                   {"left out", "left_out", Align::kRight},
                   {"error", "error", Align::kRight}};
  for (const calibrate::FittedRun* run : runs) table.Add(RowOf(*run));
  return table;
}

}  // namespace trainfare::scenarios
