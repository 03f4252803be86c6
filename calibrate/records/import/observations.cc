#include "calibrate/records/import/observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "calibrate/fit/device_fit.h"
#include "calibrate/records/import/mlperf_log.h"
#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_records.h"
#include "calibrate/records/import/table.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/records/measurement.h"
#include "calibrate/records/repeated_runs.h"
#include "hardware/files/text_file.h"
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
  int64_t disturbed_kernels = 0;
  for (const MeasuredKernel& kernel : measurements.kernels) {
    disturbed_kernels += kernel.disturbed ? 1 : 0;
    files.kernels.push_back(ObservationOf(kernel));
    if (files.host.empty()) files.host = kernel.host;
    if (files.software.empty()) files.software = kernel.software;
  }
  if (disturbed_kernels > 0) {
    files.notes.push_back(
        fmt::format("{}: {} of {} kernels were disturbed by something else on "
                    "their machine and weigh less",
                    path,
                    disturbed_kernels,
                    measurements.kernels.size()));
  }
  if (measurements.other_kinds > 0) {
    files.notes.push_back(
        fmt::format("{}: {} records are of no step and are not used",
                    path,
                    measurements.other_kinds));
  }
  KeptRuns kept = WithoutWorseRepeats(std::move(measurements.runs));
  if (kept.left_out + kept.weighed_down > 0) {
    files.notes.push_back(fmt::format(
        "{}: something else on their machine disturbed {} of {} runs: {} left "
        "out for a better run of the same workload, {} with less weight",
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
  std::vector<PowerObservation> powers = PowersOf(kept.runs);
  std::move(powers.begin(), powers.end(), std::back_inserter(files.powers));
  std::move(
      kept.runs.begin(), kept.runs.end(), std::back_inserter(files.ranks.runs));
  std::move(measurements.collectives.begin(),
            measurements.collectives.end(),
            std::back_inserter(files.ranks.collectives));
}

// "2 value: expected a number above 0, got -1 (lines 3, 10)".
std::string FaultWords(const std::string& fault,
                       const std::vector<int64_t>& lines) {
  constexpr size_t kMostLines = 10;
  const size_t named = std::min(lines.size(), kMostLines);
  return fmt::format(
      "{} {} ({} {}{})",
      lines.size(),
      fault,
      lines.size() == 1 ? "line" : "lines",
      fmt::join(lines.begin(),
                lines.begin() + static_cast<std::ptrdiff_t>(named),
                ", "),
      named < lines.size() ? ", .." : "");
}

// How many rows are not used for each reason; of those that are wrong also
// where they stand, the first of them first.
std::string ReasonsWords(const Table& table) {
  std::vector<std::string> words;
  std::vector<std::pair<int64_t, std::string>> faults;  // by the first line
  for (const auto& [reason, lines] : table.unused) {
    if (table.faults.contains(reason)) {
      faults.emplace_back(lines.front(), FaultWords(reason, lines));
    } else {
      words.push_back(fmt::format("{} {}", lines.size(), reason));
    }
  }
  std::sort(faults.begin(), faults.end());
  for (auto& fault : faults) words.push_back(std::move(fault.second));
  return fmt::format("{}", fmt::join(words, ", "));
}

void AddTable(const std::string& path, ObservationFiles& files) {
  Table table = ReadTable(path);
  std::map<int64_t, std::string> reason_of;  // by line
  for (const auto& [reason, lines] : table.unused) {
    for (const int64_t line : lines) reason_of.emplace(line, reason);
  }
  for (const auto& [line, reason] : reason_of) {
    files.unused.push_back({fmt::format("{}:{}", path, line), reason});
  }
  if (!reason_of.empty()) {
    files.notes.push_back(fmt::format("{}: {} of {} rows are not used: {}",
                                      path,
                                      reason_of.size(),
                                      table.rows,
                                      ReasonsWords(table)));
  }
  if (!table.unread.empty()) {
    files.notes.push_back(fmt::format("{}: columns that are not read: {}",
                                      path,
                                      fmt::join(table.unread, ", ")));
  }
  Append(std::move(table.observations), files);
  std::move(table.memory.begin(),
            table.memory.end(),
            std::back_inserter(files.memory));
  std::move(table.powers.begin(),
            table.powers.end(),
            std::back_inserter(files.powers));
}

void AddPublished(const std::string& folder, ObservationFiles& files) {
  ObservationFiles published = RecordsOf(LoadPublished(folder));
  const auto move = [](auto& from, auto& to) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  };
  move(published.observations, files.observations);
  move(published.profiles, files.profiles);
  move(published.powers, files.powers);
  move(published.ranks.observations, files.ranks.observations);
  move(published.ranks.collectives, files.ranks.collectives);
  move(published.sources, files.sources);
}

// By its name: an MLPerf log, or none.
bool IsLog(const fs::path& name) {
  return name.extension() == ".txt" || name.extension() == ".log";
}

// A log of another trainer does not say what was trained on what.
const RunContext& Require(const std::optional<RunContext>& run,
                          const std::string& path) {
  if (run) return *run;
  throw InputError(
      path +
      ": does not say what was trained on what; calibrate --from it with "
      "--scenario and --device");
}

void AddLog(const std::string& path,
            const std::optional<RunContext>& run,
            ObservationFiles& files) {
  const std::string text = hardware::ReadTextFile(path, "a log");
  if (!IsMlperfLog(text)) {
    throw InputError(
        path +
        ": expected an MLPerf log, got no line with :::MLLOG; what nccl-tests "
        "prints is read by `trainfare import`");
  }
  MlperfRun log = ParseMlperfLog(text, path, Require(run, path));
  files.observations.push_back(std::move(log.observation));
  std::move(
      log.notes.begin(), log.notes.end(), std::back_inserter(files.notes));
}

}  // namespace

bool SaysWhatWasTrained(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || IsLog(path)) return false;
  if (fs::path(path).extension() != ".json") return true;
  // Records, or a trainer_state.json that may be cut short.
  try {
    return !IsTrainerState(path) && !ReadMeasurements(path).runs.empty();
  } catch (const InputError&) {
    return false;
  }
}

ObservationFiles ReadObservations(const std::vector<std::string>& paths,
                                  const std::optional<RunContext>& run) {
  ObservationFiles files;
  for (const std::string& path : paths) {
    const fs::path name(path);
    const std::string suffix = name.extension().string();
    const size_t before = files.observations.size();
    hardware::RequireThere(path);
    if (fs::is_directory(name)) {
      AddPublished(path, files);
      continue;
    }
    if (suffix == ".csv") {
      AddTable(path, files);
    } else if (IsTrainerState(path)) {
      files.observations.push_back(ReadTrainerState(path, Require(run, path)));
    } else if (IsLog(name)) {
      AddLog(path, run, files);
    } else if (suffix == ".jsonl" || suffix == ".json") {
      AddRecords(path, files);
    } else {
      throw InputError(
          fmt::format("{}: expected a file of measurements: .jsonl, .csv, a "
                      "trainer_state.json, an MLPerf log (.txt, .log), or a "
                      "folder of published figures",
                      path));
    }
    MeasurementSource source{name.filename().string(), {}};
    for (size_t i = before; i < files.observations.size(); ++i) {
      source.devices.insert(files.observations[i].device);
    }
    files.sources.push_back(std::move(source));
  }
  files.ranks.source = SourceNames(files);
  if (files.observations.empty() && files.kernels.empty() &&
      files.profiles.empty() && files.memory.empty()) {
    const std::string names = SourceNames(files);
    throw InputError(fmt::format(
        "{}: nothing in it can be used{}{}",
        names.empty() ? fmt::format("{}", fmt::join(paths, ", ")) : names,
        files.notes.empty() ? "" : "; ",
        files.notes.empty() ? "" : files.notes.front()));
  }
  return files;
}

MadeFit MakeFit(const hardware::Device& device,
                const ObservationFiles& files,
                const FitOptions& options) {
  OwnFigures own =
      OfDevice(device, files.observations, files.kernels, files.profiles);
  Fit fit = FitFigures(device, own, options);
  RankFits ranks = FitRanks(device, fit, files.ranks);
  fit.ranks = std::move(ranks.groups);
  fit.power = FitPower(device, fit, files.powers);
  fit.provenance.source = SourceNames(files, &device);
  for (RankFit& group : fit.ranks) group.source = fit.provenance.source;
  return {std::move(fit), std::move(ranks.notes), std::move(own.left_out)};
}

}  // namespace trainfare::calibrate
