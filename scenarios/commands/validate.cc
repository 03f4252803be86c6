#include "scenarios/commands/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/records/import/observations.h"
#include "calibrate/records/statistics.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "scenarios/published/published_files.h"
#include "scenarios/published/published_validation.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/choice_validation.h"
#include "scenarios/validation/kernel_validation.h"
#include "scenarios/validation/memory_validation.h"
#include "scenarios/validation/power_validation.h"
#include "scenarios/validation/rank_validation.h"
#include "scenarios/validation/repeats.h"
#include "scenarios/validation/room_notes.h"
#include "scenarios/validation/step_validation.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::LeftOutRow;
using calibrate::Observation;
using calibrate::Quantity;

std::string ToText(const ValidateOptions& options) {
  switch (options.protocol) {
    case Protocol::kAsShipped:
      return "as-shipped";
    case Protocol::kInSample:
      return "in-sample";
    case Protocol::kLeaveOneOut:
      return "leave-one-out";
    case Protocol::kLeaveSourceOut:
      return "leave-source-out";
    case Protocol::kLeaveHostsOut:
      return "leave-hosts-out";
    case Protocol::kModelRuns:
      return options.drawn_runs == 0
                 ? "leave-model-out"
                 : fmt::format("model-runs={}", options.drawn_runs);
    case Protocol::kLeaveDeviceOut:
      return "leave-device-out";
    case Protocol::kRunsPerDevice:
      return options.drawn_runs == 1
                 ? "one-run-per-device"
                 : fmt::format("k-runs={}", options.drawn_runs);
    case Protocol::kAddedRuns:
      return fmt::format("added-runs={}", options.drawn_runs);
  }
  ENSURE(false, "a protocol without a name");
}

std::string Explain(const ValidateOptions& options) {
  switch (options.protocol) {
    case Protocol::kAsShipped:
      return "nothing is fitted here: the fits at hand, datasheets where there "
             "is none";
    case Protocol::kInSample:
      return "every device was fitted to all of its rows: no test of "
             "prediction";
    case Protocol::kLeaveOneOut:
      return "every row was predicted by a fit to the other workloads of its "
             "device";
    case Protocol::kLeaveSourceOut:
      return "every row was predicted by a fit to what others measured on its "
             "device";
    case Protocol::kLeaveHostsOut:
      return "every row was predicted by a fit to the runs of its device over "
             "other numbers of hosts";
    case Protocol::kModelRuns:
      if (options.drawn_runs == 0) {
        return "every row was predicted by a fit to the models of other sizes "
               "on its device";
      }
      return fmt::format(
          "every model of a device was predicted by a fit to models of other "
          "sizes there and {} of its own workloads, drawn with seed {}",
          options.drawn_runs,
          options.seed);
    case Protocol::kLeaveDeviceOut:
      return "every device was predicted without a fit, by its datasheet and "
             "the priors of its kind";
    case Protocol::kRunsPerDevice:
      return fmt::format(
          "every device was fitted to {} of its workloads, "
          "drawn with seed {}; the others were predicted",
          options.drawn_runs,
          options.seed);
    case Protocol::kAddedRuns:
      return fmt::format(
          "{} workloads of each device and stack, drawn with seed {}, were "
          "added to the fits at hand; the others were predicted",
          options.drawn_runs,
          options.seed);
  }
  ENSURE(false, "a protocol without words");
}

// How far measurements of one point are apart, over all whole steps.
struct RepeatErrors {
  size_t points = 0;
  std::string times;  // "3", or "2 to 3"
  double median = 0;
  double worst = 0;
};

std::optional<RepeatErrors> ErrorsOf(const std::vector<Repeats>& points) {
  RepeatErrors result;
  std::vector<double> errors;
  std::set<size_t> times;
  for (const Repeats& point : points) {
    if (point.middle.quantity != Quantity::kStep) continue;
    const std::vector<double> own = point.OwnErrors();
    if (own.empty()) continue;
    ++result.points;
    times.insert(own.size());
    errors.insert(errors.end(), own.begin(), own.end());
  }
  if (errors.empty()) return std::nullopt;
  result.times = times.size() == 1
                     ? fmt::format("{}", *times.begin())
                     : fmt::format("{} to {}", *times.begin(), *times.rbegin());
  result.median = calibrate::Median(errors);
  result.worst = *std::max_element(errors.begin(), errors.end());
  return result;
}

// Where the rows are points, in their order.
void NoteRepeats(const std::vector<Repeats>& points,
                 std::vector<StepRow>& rows) {
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].measured.size() < 2) continue;
    rows[i].repeat_spread = points[i].Spread();
  }
}

// Rows that are not predicted: people read how many there are for each reason,
// machines read each.
void AddLeftOut(const std::vector<LeftOutRow>& rows, Table& table) {
  for (const LeftOutRow& row : rows) {
    std::vector<Cell> cells(table.columns.size(), Cell("-", std::string()));
    cells.front() = row.label;
    cells.back() = row.reason;
    table.elided.insert(table.rows.size());
    table.Add(std::move(cells));
  }
}

Table RowTable(const StepValidation& validation) {
  const std::vector<StepRow>& rows = validation.rows;
  const bool repeated =
      std::any_of(rows.begin(), rows.end(), [](const StepRow& row) {
        return row.repeat_spread.has_value();
      });
  Table table;
  table.columns = {{"row", "label", Align::kLeft},
                   {"device", "device", Align::kLeft},
                   {"devices", "devices", Align::kRight, 4},
                   {"model", "model", Align::kLeft, 6},
                   {"precision", "precision", Align::kLeft, 5},
                   {"batch", "batch", Align::kRight, 2},
                   {"length", "sequence_length", Align::kRight, 3},
                   {"part", "quantity", Align::kLeft, 8},
                   {"measured", "measured_s", Align::kRight},
                   {"predicted", "predicted_s", Align::kRight},
                   {"error", "error_percent", Align::kDecimal},
                   {"inside 80 %", "covered", Align::kLeft, 1},
                   {"grade", "grade", Align::kLeft, 7}};
  if (repeated) {
    table.columns.push_back(
        {"repeats apart", "repeat_spread_percent", Align::kDecimal, 9});
  }
  table.columns.push_back(
      {"left out", "left_out", Align::kLeft, 0, Audience::kMachines});
  for (const StepRow& row : rows) {
    if (!row.predicted) continue;
    const Observation& o = *row.observation;
    const RowError error = row.Error();
    std::vector<Cell> cells = {
        o.name(),
        validation.DeviceOf(row)->name,
        CountCell(o.device_count),
        o.workload.architecture.name,
        std::string(model::ToText(o.workload.precision)),
        CountCell(o.workload.batch),
        CountCell(o.workload.sequence_length),
        std::string(calibrate::ToText(o.quantity)),
        Cell(hardware::FormatTime(o.measured), ToSeconds(o.measured)),
        Cell(hardware::FormatTime(*row.predicted), ToSeconds(*row.predicted)),
        Cell(fmt::format("{:+.1f} %", error.error), error.error),
        error.covered.value_or(false) ? "yes" : "no",
        std::string(calibrate::ToText(row.grade))};
    if (repeated) {
      cells.push_back(
          row.repeat_spread
              ? Cell(fmt::format("{:.1f} %", 100.0 * *row.repeat_spread),
                     100.0 * *row.repeat_spread)
              : Cell("-"));
    }
    cells.emplace_back();
    table.Add(std::move(cells));
  }
  return table;
}

Json RowJson(const StepRow& row, const StepValidation& validation) {
  const Observation& o = *row.observation;
  const RowError error = row.Error();
  Json json =
      RunJson(o.name(), *validation.DeviceOf(row), o.device_count, o.workload);
  json["framework"] = o.framework;
  json["source"] = o.group;
  json["measured_by"] = o.source;
  json["source_seen"] = row.source_seen;
  json["quantity"] = calibrate::ToText(o.quantity);
  json["measured_s"] = ToSeconds(o.measured);
  json["predicted_s"] = ToSeconds(*row.predicted);
  json["predicted_low_s"] = ToSeconds(row.low);
  json["predicted_high_s"] = ToSeconds(row.high);
  json["predicted_low_95_s"] = ToSeconds(row.low_95);
  json["predicted_high_95_s"] = ToSeconds(row.high_95);
  if (row.baselines) {
    json["roofline_s"] = ToSeconds(row.baselines->roofline);
    json["at_peak_s"] = ToSeconds(row.baselines->at_peak);
  }
  json["log_sigma"] = row.log_sigma;
  json["source_log_sigma"] = row.source_sigma;
  json["error_percent"] = error.error;
  json["covered"] = error.covered.value_or(false);
  json["covered_95"] = error.covered_95.value_or(false);
  json["grade"] = calibrate::ToText(row.grade);
  json["fitted"] = row.fitted;
  if (row.repeat_spread) {
    json["repeat_spread_percent"] = 100.0 * *row.repeat_spread;
  }
  return json;
}

Json LeftOutJson(const std::vector<LeftOutRow>& rows) {
  Json json = Json::array();
  for (const LeftOutRow& row : rows) {
    json.push_back({{"label", row.label}, {"reason", row.reason}});
  }
  return json;
}

// Whether rows are fitted to that are then not asked for.
bool DrawsRows(Protocol protocol) {
  return protocol == Protocol::kRunsPerDevice ||
         protocol == Protocol::kModelRuns;
}

// The errors of the rows that count, and why others do not.
struct Tally {
  std::vector<RowError> errors;
  ErrorGroups groups;
  std::map<std::string, int64_t> reasons;  // rows that were skipped for each
  Json rows = Json::array();
  std::vector<LeftOutRow> skipped;
  Json fitted = Json::array();  // labels of rows that a fit was made from
};

Tally TallyOf(const StepValidation& validation,
              const ValidateOptions& options) {
  Tally tally;
  const bool drawn = DrawsRows(options.protocol);
  for (const StepRow& row : validation.rows) {
    if (row.fitted) tally.fitted.push_back(row.observation->name());
    if (row.fitted && drawn) continue;
    if (!row.asked || !row.predicted) {
      const std::string reason =
          row.asked ? row.reason
                    : "a part of a step whose whole is here: fits take it";
      ++tally.reasons[reason];
      tally.skipped.push_back({row.observation->name(), reason});
      continue;
    }
    tally.errors.push_back(row.Error());
    tally
        .groups[GroupOf(
            *row.observation, validation.DeviceOf(row)->name, options.group_by)]
        .push_back(row.Error());
    tally.rows.push_back(RowJson(row, validation));
  }
  return tally;
}

// Whole steps that were predicted: the question is everything but the device.
std::vector<MeasuredAnswer> AnswersOf(const StepValidation& validation,
                                      const ValidateOptions& options) {
  const bool drawn = DrawsRows(options.protocol);
  std::vector<MeasuredAnswer> answers;
  for (const StepRow& row : validation.rows) {
    const Observation& o = *row.observation;
    if (!row.predicted || o.quantity != Quantity::kStep) continue;
    if (row.fitted && drawn) continue;
    answers.push_back(
        {fmt::format(
             "{}, {} together, {}", row.point, o.run_devices, o.framework),
         validation.DeviceOf(row)->name,
         o.measured,
         {ToSeconds(*row.predicted), ToSeconds(row.low), ToSeconds(row.high)}});
  }
  return answers;
}

// Without a second source of any device there is none to leave out.
bool LacksSources(const StepValidation& validation,
                  const ValidateOptions& options) {
  if (options.protocol != Protocol::kLeaveSourceOut) return false;
  std::map<std::string, std::set<std::string>> sources;
  for (const StepRow& row : validation.rows) {
    if (const hardware::Device* device = validation.DeviceOf(row)) {
      sources[device->name].insert(row.observation->source);
    }
  }
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const auto& of) {
           return of.second.size() == 1;
         });
}

constexpr std::string_view kOneSourceEach =
    "each device has one source only in these files, so that none can be left "
    "out; leave-one-out and leave-device-out need no second one";

std::string Headline(const ErrorSummary& overall,
                     const calibrate::ObservationFiles& files,
                     const ValidateOptions& options) {
  if (overall.count == 0) {
    return fmt::format("no row of {} predicted ({})",
                       calibrate::SourceNames(files),
                       ToText(options));
  }
  return fmt::format(
      "{} of {} ({}): median error {:.1f} %, mean {:.1f} "
      "%, 90 % below {:.1f} %, worst {:.1f} %; {:.0f} % "
      "inside their 80 % interval, {:.0f} % inside their 95 % one",
      hardware::Plural(static_cast<int64_t>(overall.count), "row"),
      calibrate::SourceNames(files),
      ToText(options),
      overall.median,
      overall.mape,
      overall.p90,
      overall.max,
      overall.coverage,
      overall.coverage_95);
}

std::vector<Note> NotesOf(const Tally& tally,
                          const std::optional<RepeatErrors>& repeats,
                          const calibrate::ObservationFiles& files,
                          const ValidateOptions& options) {
  std::vector<Note> notes = {Explain(options)};
  if (repeats) {
    notes.push_back(fmt::format(
        "noise: {} measured {} times; a measurement predicted by "
        "the median of its repeats errs by {:.1f} % in the median, {:.1f} % at "
        "worst",
        hardware::Plural(static_cast<int64_t>(repeats->points), "point"),
        repeats->times,
        100.0 * repeats->median,
        100.0 * repeats->worst));
  }
  if (options.protocol == Protocol::kAsShipped && !tally.fitted.empty()) {
    notes.emplace_back(
        fmt::format("{} of these rows are among those that the fits at hand "
                    "were made from: for them it is no test of prediction; "
                    "--protocol leave-one-out is one",
                    tally.fitted.size()),
        Caution::kRowsOfTheFit);
  }
  for (const auto& [reason, count] : tally.reasons) {
    notes.emplace_back(
        fmt::format("{} skipped: {}", hardware::Plural(count, "row"), reason),
        Caution::kRowsSkipped);
  }
  notes.insert(notes.end(), files.notes.begin(), files.notes.end());
  return notes;
}

Json ResultOf(const ValidateOptions& options,
              const ErrorSummary& overall,
              const std::optional<RepeatErrors>& repeats,
              const std::vector<PriceSource>& prices,
              Tally tally) {
  Json json;
  json["overall"] = ToJson(overall);
  json["groups"] = GroupList(tally.groups);
  json["rows"] = std::move(tally.rows);
  json.update(ValidationHead(options, prices));
  json["protocol"] = ToText(options);
  if (repeats) {
    json["repeats"] = {{"points", repeats->points},
                       {"median", 100.0 * repeats->median},
                       {"max", 100.0 * repeats->worst}};
  }
  json["files"] = options.files;
  json["fitted"] = std::move(tally.fitted);
  json["skipped"] = LeftOutJson(tally.skipped);
  return json;
}

// Rows of tables and records: steps, and memory and power beside them.
Report ValidateRows(const ValidateOptions& options) {
  calibrate::ObservationFiles files =
      calibrate::ReadObservations(options.files);
  if (!files.kernels.empty()) {
    files.notes.push_back(
        fmt::format("{} kernels timed by themselves are not in these rows; a "
                    "file that holds nothing else is compared kernel by kernel",
                    files.kernels.size()));
  }
  std::vector<Repeats> points;
  if (options.repeats == RepeatRule::kMedian) {
    points = MergeRepeats(files.observations);
  }
  std::vector<Observation> merged;
  for (const Repeats& point : points) merged.push_back(point.middle);
  StepValidation validation = ValidateSteps(
      options, points.empty() ? files.observations : merged, files.powers);
  NoteRepeats(points, validation.rows);

  Tally tally = TallyOf(validation, options);
  const ErrorSummary overall = Summarise(tally.errors);
  const std::optional<RepeatErrors> repeats = ErrorsOf(points);
  Report report;
  report.warnings = NotesOf(validation.left_out_fits, Caution::kFitUnreadable);
  report.headline.push_back(Headline(overall, files, options));
  Table rows = RowTable(validation);
  AddLeftOut(tally.skipped, rows);
  AddLeftOut(files.unused, rows);
  report.tables.push_back(std::move(rows));
  report.tables.push_back(
      SummaryTable("group", tally.groups, {{"all", overall}}));
  report.notes = NotesOf(tally, repeats, files, options);
  if (auto note = RoomNote(files.observations)) {
    report.notes.push_back(std::move(*note));
  }
  const bool one_source_each = LacksSources(validation, options);
  if (one_source_each) {
    report.notes.emplace_back(kOneSourceEach, Caution::kRowsSkipped);
  }
  DevicePrices prices = ShippedDevicePrices();
  const std::vector<MeasuredChoice> choices =
      ChoicesOf(AnswersOf(validation, options), prices.of_device);
  if (choices.empty()) {
    prices.sources.clear();
  } else {
    report.notes.emplace_back(ChoiceNote(choices));
  }
  Json json =
      ResultOf(options, overall, repeats, prices.sources, std::move(tally));
  json["choices"] = ToJson(choices);
  json["unused"] = LeftOutJson(files.unused);
  AppendMemory(files.memory, options.group_by, report, json);
  AppendPower(validation, options, report, json);
  report.json = AnswerText(std::move(json), report);
  // A table of memory alone has no time to predict.
  if (!files.observations.empty()) AnswerWithOverall(overall, report);
  if (one_source_each && report.exit_code != kOk) {
    report.complaint =
        fmt::format("no row could be predicted: {}", kOneSourceEach);
  }
  return report;
}

}  // namespace

Report Validate(const ValidateOptions& options) {
  if (options.seed > model::kLargestSeed) {
    throw model::InputError(
        fmt::format("--seed: expected a whole number from 0 to {}, got {}",
                    model::kLargestSeed,
                    static_cast<int64_t>(options.seed)));
  }
  if (IsPublished(options.files)) return ValidatePublished(options);
  if (HoldKernels(options.files)) return ValidateKernels(options);
  if (HoldRanks(options.files)) return ValidateRanks(options);
  return ValidateRows(options);
}

}  // namespace trainfare::scenarios
