#include "scenarios/validation/rank_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "calibrate/fit/data_parallel.h"
#include "calibrate/records/measurement.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::MeasuredRun;
using calibrate::RankStep;
using model::InputError;
using model::Seconds;

struct RankRow {
  std::string network;
  int64_t ranks = 0;
  model::Workload workload;
  calibrate::RankNetwork fitted;
  RankStep predicted;
  RankStep measured;
  Seconds<> recursion;  // backward, from this run's own times of buckets
};

double Error(Seconds<> predicted, Seconds<> measured) {
  return 100.0 * (predicted / measured - 1.0);
}

// The run of one rank that computes what `run` does.
const MeasuredRun& OneRankOf(const MeasuredRun& run,
                             const std::vector<MeasuredRun>& runs,
                             const std::string& file) {
  for (const MeasuredRun& one : runs) {
    if (one.device_count == 1 && one.workload == run.workload &&
        one.threads == run.threads && one.buckets == run.buckets) {
      return one;
    }
  }
  throw InputError(file,
                   run.line,
                   0,
                   "expected a run of one rank with the same model, batch, "
                   "threads and buckets in this file, got none");
}

std::vector<RankRow> RowsOf(const std::string& file) {
  const calibrate::Measurements measurements =
      calibrate::ReadMeasurements(file);
  std::vector<RankRow> rows;
  for (const MeasuredRun& run : measurements.runs) {
    if (run.device_count == 1) continue;
    RankRow row;
    row.network = std::filesystem::path(file).stem().string();
    row.ranks = run.device_count;
    row.workload = run.workload;
    row.fitted =
        calibrate::FitNetwork(measurements.collectives, run.device_count);
    row.predicted = calibrate::PredictRanks(
        OneRankOf(run, measurements.runs, file), row.fitted);
    row.measured = calibrate::MeasuredRanks(run);
    row.recursion = calibrate::RecursionBackward(run);
    rows.push_back(row);
  }
  return rows;
}

Cell PercentCell(double percent) {
  return {fmt::format("{:+.1f} %", percent), percent};
}
// Communication that computation hides.
double Hidden(const RankStep& step) {
  return 100.0 * std::clamp(1.0 - step.exposed / step.communication, 0.0, 1.0);
}
Cell ShareCell(double percent) {
  return {fmt::format("{:.0f} %", percent), percent};
}

Table RankTable(const std::vector<RankRow>& rows) {
  Table table;
  table.columns = {
      {"network", "network", Align::kLeft},
      {"ranks", "ranks", Align::kRight},
      {"ring step", "step_latency_s", Align::kRight, 6},
      {"link", "link_bytes_per_s", Align::kRight, 7},
      {"beside", "link_beside_bytes_per_s", Align::kRight, 8},
      {"speed", "speed", Align::kRight, 9},
      {"backward", "backward_s", Align::kRight, 2},
      {"predicted", "predicted_backward_s", Align::kRight, 2},
      {"error", "backward_error_percent", Align::kDecimal, 2},
      {"step", "step_s", Align::kRight},
      {"predicted", "predicted_step_s", Align::kRight},
      {"error", "step_error_percent", Align::kDecimal},
      {"exposed", "exposed_s", Align::kRight, 4},
      {"predicted", "predicted_exposed_s", Align::kRight, 4},
      {"hidden", "hidden_percent", Align::kDecimal, 5},
      {"recursion", "recursion_error_percent", Align::kDecimal, 3}};
  for (const RankRow& row : rows) {
    const RankStep& m = row.measured;
    const RankStep& p = row.predicted;
    const double link = row.fitted.alone.ring.link.base();
    const double beside = row.fitted.beside.ring.link.base();
    table.Add({row.network,
               CountCell(row.ranks),
               TimeCell(row.fitted.alone.ring.step_latency),
               Cell(fmt::format("{:.1f} MB/s", link / 1e6), link),
               Cell(fmt::format("{:.1f} MB/s", beside / 1e6), beside),
               Cell(fmt::format("{:.2f}", row.fitted.speed), row.fitted.speed),
               TimeCell(m.backward),
               TimeCell(p.backward),
               PercentCell(Error(p.backward, m.backward)),
               TimeCell(m.step),
               TimeCell(p.step),
               PercentCell(Error(p.step, m.step)),
               TimeCell(m.exposed),
               TimeCell(p.exposed),
               ShareCell(Hidden(m)),
               PercentCell(Error(row.recursion, m.backward))});
  }
  return table;
}

Json GroupJson(std::string_view name, const std::vector<RowError>& errors) {
  Json json;
  json["group"] = name;
  json.update(ToJson(Summarise(errors)));
  json.erase("with_interval");
  json.erase("coverage");  // no intervals here
  return json;
}

Json RankRowJson(const RankRow& row) {
  Json json;
  json["network"] = row.network;
  json["ranks"] = row.ranks;
  json["model"] = row.workload.architecture.name;
  json["batch"] = row.workload.batch;
  json["sequence_length"] = row.workload.sequence_length;
  json["step_latency_s"] = ToSeconds(row.fitted.alone.ring.step_latency);
  json["link_bytes_per_s"] = row.fitted.alone.ring.link.base();
  json["step_latency_beside_s"] =
      ToSeconds(row.fitted.beside.ring.step_latency);
  json["link_beside_bytes_per_s"] = row.fitted.beside.ring.link.base();
  json["speed"] = row.fitted.speed;
  const auto add = [&](const char* key, const RankStep& step) {
    json[key] = {{"backward_s", ToSeconds(step.backward)},
                 {"backward_compute_s", ToSeconds(step.compute_end)},
                 {"step_s", ToSeconds(step.step)},
                 {"communication_s", ToSeconds(step.communication)},
                 {"exposed_s", ToSeconds(step.exposed)},
                 {"hidden_percent", Hidden(step)}};
  };
  add("measured", row.measured);
  add("predicted", row.predicted);
  json["backward_error_percent"] =
      Error(row.predicted.backward, row.measured.backward);
  json["step_error_percent"] = Error(row.predicted.step, row.measured.step);
  json["recursion_error_percent"] = Error(row.recursion, row.measured.backward);
  return json;
}

std::string Line(const char* name, const std::vector<RowError>& errors) {
  const ErrorSummary summary = Summarise(errors);
  return fmt::format("{}: median error {:.1f} %, worst {:.1f} %, n {}",
                     name,
                     summary.median,
                     summary.max,
                     summary.count);
}

}  // namespace

bool HoldRanks(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string suffix = std::filesystem::path(file).extension().string();
    if (suffix != ".jsonl" && suffix != ".json") return false;
    const calibrate::Measurements measurements =
        calibrate::ReadMeasurements(file);
    const auto has = [&](bool several) {
      return std::any_of(measurements.runs.begin(),
                         measurements.runs.end(),
                         [&](const MeasuredRun& run) {
                           return (run.device_count > 1) == several &&
                                  !run.buckets.empty();
                         });
    };
    if (measurements.collectives.empty() || !has(true) || !has(false)) {
      return false;
    }
  }
  return !files.empty();
}

Report ValidateRanks(const ValidateOptions& options) {
  if (options.protocol != Protocol::kAsShipped) {
    throw UsageError(
        "--protocol: runs over ranks are predicted from the other records of "
        "their file; leave it out");
  }
  std::vector<RankRow> rows;
  for (const std::string& file : options.files) {
    const std::vector<RankRow> of_file = RowsOf(file);
    rows.insert(rows.end(), of_file.begin(), of_file.end());
  }
  std::vector<RowError> backward;
  std::vector<RowError> step;
  std::vector<RowError> recursion;
  Json row_list = Json::array();
  for (const RankRow& row : rows) {
    backward.push_back(
        {Error(row.predicted.backward, row.measured.backward), std::nullopt});
    step.push_back(
        {Error(row.predicted.step, row.measured.step), std::nullopt});
    recursion.push_back(
        {Error(row.recursion, row.measured.backward), std::nullopt});
    row_list.push_back(RankRowJson(row));
  }
  std::vector<RowError> both = backward;
  both.insert(both.end(), step.begin(), step.end());

  Report report;
  report.headline.push_back(Line("backward over ranks", backward));
  report.headline.push_back(Line("step over ranks", step));
  report.headline.push_back(
      Line("recursion with each step's own bucket times", recursion));
  report.tables.push_back(RankTable(rows));
  report.notes.emplace_back(
      "predicted from the run of one rank and the all-reduces in the same "
      "file; nothing is fitted to the runs over several ranks");
  Json json;
  json["overall"] = GroupJson("backward and step", both);
  json["groups"] = Json::array({GroupJson("backward", backward),
                                GroupJson("step", step),
                                GroupJson("recursion", recursion)});
  json["rows"] = std::move(row_list);
  json.update(ValidationHead(options));
  json["of"] = "ranks";
  json["files"] = options.files;
  report.json = AnswerText(std::move(json), report);
  AnswerWithOverall(Summarise(both), report);
  return report;
}

}  // namespace trainfare::scenarios
