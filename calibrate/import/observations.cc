#include "calibrate/import/observations.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <utility>

#include "calibrate/disturbance.h"
#include "calibrate/import/table.h"
#include "calibrate/measurement.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

void Append(std::vector<Observation> more, ObservationFiles& files) {
  std::move(more.begin(), more.end(), std::back_inserter(files.observations));
}

void AddRecords(const std::string& path, ObservationFiles& files) {
  Measurements measurements = ReadMeasurements(path);
  for (const RefusedRun& refused : measurements.refused) {
    files.notes.push_back(fmt::format(
        "{}:{}: a run was refused: {}", path, refused.line, refused.message));
  }
  if (!measurements.kernels.empty()) {
    files.notes.push_back(fmt::format(
        "{}: {} records of kernels by themselves are not used; validate "
        "compares a file that holds nothing else",
        path,
        measurements.kernels.size()));
  }
  if (measurements.other_kinds > 0) {
    files.notes.push_back(
        fmt::format("{}: {} records are of no step and are not used",
                    path,
                    measurements.other_kinds));
  }
  const KeptRuns kept = WithoutWorseRepeats(std::move(measurements.runs));
  if (kept.left_out + kept.weighed_down > 0) {
    files.notes.push_back(fmt::format(
        "{}: {} of {} runs were disturbed by something else on their machine: "
        "{} left out for a better run of the same workload, {} weigh less",
        path,
        kept.left_out + kept.weighed_down,
        kept.runs.size() + static_cast<size_t>(kept.left_out),
        kept.left_out,
        kept.weighed_down));
  }
  for (const MeasuredRun& run : kept.runs) {
    if (files.host.empty()) files.host = run.host;
    if (files.software.empty()) files.software = run.software;
  }
  Append(ObservationsOf(kept.runs), files);
}

void AddTable(const std::string& path, ObservationFiles& files) {
  Table table = ReadTable(path);
  int64_t unused = 0;
  std::string reasons;
  for (const auto& [reason, count] : table.unused) {
    unused += count;
    reasons +=
        fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, reason);
  }
  if (unused > 0) {
    files.notes.push_back(fmt::format("{}: {} of {} rows are not used: {}",
                                      path,
                                      unused,
                                      table.rows,
                                      reasons));
  }
  Append(std::move(table.observations), files);
}

}  // namespace

ObservationFiles ReadObservations(const std::vector<std::string>& paths,
                                  const std::optional<RunContext>& run) {
  ObservationFiles files;
  for (const std::string& path : paths) {
    const fs::path name(path);
    const std::string suffix = name.extension().string();
    if (suffix == ".csv") {
      AddTable(path, files);
    } else if (IsTrainerState(path)) {
      if (!run) {
        throw InputError(
            path +
            ": does not say what was trained on what; calibrate --from it with "
            "--scenario and --device");
      }
      files.observations.push_back(ReadTrainerState(path, *run));
    } else if (suffix == ".jsonl" || suffix == ".json") {
      AddRecords(path, files);
    } else {
      throw InputError(fmt::format(
          "{}: expected a file of measurements, .jsonl or .csv", path));
    }
    if (!files.source.empty()) files.source += ", ";
    files.source += name.filename().string();
  }
  if (files.observations.empty()) {
    throw InputError(
        fmt::format("{}: nothing in it can be used{}{}",
                    files.source,
                    files.notes.empty() ? "" : "; ",
                    files.notes.empty() ? "" : files.notes.front()));
  }
  return files;
}

}  // namespace trainfare::calibrate
