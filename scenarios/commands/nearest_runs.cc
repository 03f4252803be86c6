#include "scenarios/commands/nearest_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fit_folders.h"
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
          run.assumed ? "in part" : "yes",
          run.devices ? fmt::format("{}", *run.devices) : "-",
          std::string(calibrate::ToText(run.quantity)),
          hardware::FormatTime(run.measured),
          run.left_out ? hardware::FormatTime(*run.left_out) : "-",
          run.left_out ? ErrorText(run) : "-"};
}

Table TableOf(std::string title) {
  Table table;
  table.title = std::move(title);
  table.columns = {{"run", "run", Align::kLeft},
                   {"layers", "layers", Align::kRight, 3},
                   {"batch", "batch", Align::kRight},
                   {"length", "sequence_length", Align::kRight},
                   {"settings", "settings", Align::kLeft, 1},
                   {"stated", "stated", Align::kLeft, 5},
                   {"devices", "devices", Align::kRight, 2},
                   {"figure", "quantity", Align::kLeft, 4},
                   {"measured", "measured", Align::kRight},
                   {"left out", "left_out", Align::kRight},
                   {"error", "error", Align::kRight}};
  return table;
}

}  // namespace

std::vector<NearRun> NearestRuns(const std::vector<const calibrate::Fit*>& fits,
                                 const model::Workload& workload,
                                 size_t most) {
  const calibrate::ErrorPoint here =
      calibrate::ErrorPointOf(calibrate::PlaceOf(workload));
  std::vector<std::pair<double, NearRun>> runs;
  for (const calibrate::Fit* fit : fits) {
    for (const calibrate::FittedRun* run : fit->ChiefRuns()) {
      if (!run->place) continue;
      runs.emplace_back(calibrate::ErrorCorrelation(
                            here, calibrate::ErrorPointOf(*run->place)),
                        NearRun{fit, run});
    }
  }
  std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  runs.resize(std::min(most, runs.size()));
  std::vector<NearRun> nearest;
  nearest.reserve(runs.size());
  for (const auto& [likeness, run] : runs) nearest.push_back(run);
  return nearest;
}

std::optional<Table> NearestRunTable(const calibrate::Fit& fit,
                                     const model::Workload& workload) {
  const auto runs = NearestRuns({&fit}, workload, kShownRuns);
  if (runs.empty()) return std::nullopt;
  Table table =
      TableOf("measured nearest to this, and what the fit without it says");
  for (const NearRun& near : runs) table.Add(RowOf(*near.run));
  return table;
}

std::optional<Table> NearestRunsOfKind(hardware::DeviceKind kind,
                                       const model::Workload& workload) {
  const calibrate::LoadedFits loaded = calibrate::LoadFits();
  std::vector<const calibrate::Fit*> alike;
  for (const calibrate::Fit& fit : loaded.fits) {
    if (fit.kind == kind) alike.push_back(&fit);
  }
  const auto runs = NearestRuns(alike, workload, kShownRuns);
  if (runs.empty()) return std::nullopt;
  Table table = TableOf(
      "nothing was measured on this device; measured nearest to this on others "
      "of its kind, and what their fits without it say");
  table.columns.insert(table.columns.begin(),
                       {"device", "device", Align::kLeft});
  for (const NearRun& near : runs) {
    std::vector<Cell> row = RowOf(*near.run);
    row.insert(row.begin(), Cell(near.fit->device));
    table.Add(std::move(row));
  }
  return table;
}

}  // namespace trainfare::scenarios
