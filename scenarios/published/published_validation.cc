#include "scenarios/published/published_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "calibrate/records/import/published_quantity.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;
using calibrate::Published;
using calibrate::PublishedGroup;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using model::InputError;

constexpr std::array kProtocols = {PublishedProtocol::kAsShipped,
                                   PublishedProtocol::kLeaveOneOut};

std::string_view ToText(PublishedProtocol protocol) {
  return protocol == PublishedProtocol::kLeaveOneOut ? "leave-one-out"
                                                     : "as-shipped";
}

std::string_view ToText(PublishedMeasure measure) {
  switch (measure) {
    case PublishedMeasure::kPercent:
      return "percent";
    case PublishedMeasure::kPoints:
      return "points";
    case PublishedMeasure::kExact:
      return "exact";
    case PublishedMeasure::kOutcome:
      return "outcome";
    case PublishedMeasure::kBound:
      return "bound";
  }
  ENSURE(false, "a measure without a name");
}

std::string ErrorText(const PublishedError& error) {
  switch (error.measure) {
    case PublishedMeasure::kPercent:
      return fmt::format("{:+.1f} %", error.error);
    case PublishedMeasure::kPoints:
      return fmt::format("{:+.1f} points", error.error);
    case PublishedMeasure::kExact:
    case PublishedMeasure::kOutcome:
    case PublishedMeasure::kBound:
      return error.right ? "right" : "wrong";
  }
  ENSURE(false, "a measure without words");
}

// What nobody states of a run and moves its answer: not its price.
bool IsInferred(const PublishedRun& run) {
  return std::any_of(
      run.assumed.begin(), run.assumed.end(), [](const auto& entry) {
        return entry.first != "price" && entry.first != "overlap_gap";
      });
}

// A protocol's answers to all rows, judged.
struct Answers {
  PublishedProtocol protocol = PublishedProtocol::kAsShipped;
  PublishedPredictions predictions;
  std::vector<std::optional<PublishedError>> errors;
  std::vector<PublishedRank> ranks;
};

Answers AnswersOf(const Published& published, PublishedProtocol protocol) {
  Answers answers;
  answers.protocol = protocol;
  answers.predictions = PredictPublished(published, protocol);
  const auto& rows = answers.predictions.rows;
  for (size_t i = 0; i < published.rows.size(); ++i) {
    answers.errors.push_back(ErrorOf(published, published.rows[i], rows[i]));
  }
  answers.ranks = RankPublished(published, rows);
  return answers;
}

// The rows of one group under one protocol.
struct GroupResult {
  ErrorSummary stated;  // rows of which the document states all that moves them
  ErrorSummary all;
  PublishedMeasure measure = PublishedMeasure::kPercent;
  int64_t judged = 0;  // right or wrong: outcomes, bounds
  int64_t right = 0;
  int64_t refused = 0;
  int64_t seen = 0;
  int64_t with_interval = 0;
  int64_t covered = 0;
  int64_t parameters = 0;

  bool empty() const { return all.count + judged + refused == 0; }
};

// Rows of points count by themselves where there are no rows of percent.
GroupResult ResultOf(const Published& published,
                     const Answers& answers,
                     const std::vector<size_t>& rows) {
  GroupResult result;
  std::map<PublishedMeasure, std::vector<RowError>> all;
  std::map<PublishedMeasure, std::vector<RowError>> stated;
  for (const size_t i : rows) {
    const PublishedRow& row = published.rows[i];
    const PublishedPrediction& prediction = answers.predictions.rows[i];
    if (prediction.checks_data) continue;
    if (prediction.refused) ++result.refused;
    const auto& error = answers.errors[i];
    if (!error) continue;
    if (prediction.seen) ++result.seen;
    if (error->covered) {
      ++result.with_interval;
      if (*error->covered) ++result.covered;
    }
    const bool number = error->measure == PublishedMeasure::kPercent ||
                        error->measure == PublishedMeasure::kPoints;
    if (!number) {
      ++result.judged;
      if (error->right) ++result.right;
      continue;
    }
    const RowError of_row{error->error, error->covered.value_or(false)};
    all[error->measure].push_back(of_row);
    if (!IsInferred(published.RunOf(row))) {
      stated[error->measure].push_back(of_row);
    }
  }
  result.measure = all.contains(PublishedMeasure::kPercent) || all.empty()
                       ? PublishedMeasure::kPercent
                       : PublishedMeasure::kPoints;
  result.all = Summarise(all[result.measure]);
  result.stated = Summarise(stated[result.measure]);
  return result;
}

std::string LimitText(const PublishedGroup::Limit& limit) {
  std::vector<std::string> words;
  if (limit.median) words.push_back(fmt::format("median {} %", *limit.median));
  if (limit.worst) words.push_back(fmt::format("worst {} %", *limit.worst));
  if (limit.all_right) words.emplace_back("all right");
  if (limit.all_answered) words.emplace_back("none refused");
  if (limit.all_inside) words.emplace_back("all inside");
  return words.empty() ? "none set" : fmt::format("{}", fmt::join(words, ", "));
}

// By how much a limit is missed; empty: met.
std::vector<std::string> MissesOf(const PublishedGroup::Limit& limit,
                                  const GroupResult& result) {
  std::vector<std::string> missed;
  const auto check = [&](std::string_view what,
                         const std::optional<double>& most,
                         double value) {
    if (most && value > *most) {
      missed.push_back(fmt::format("{} by {:.1f}", what, value - *most));
    }
  };
  check("median", limit.median, result.all.median);
  check("worst", limit.worst, result.all.max);
  if (limit.all_right && result.right < result.judged) {
    missed.push_back(fmt::format("{} wrong", result.judged - result.right));
  }
  if (limit.all_answered && result.refused > 0) {
    missed.push_back(fmt::format("{} refused", result.refused));
  }
  if (limit.all_inside && result.covered < result.with_interval) {
    missed.push_back(
        fmt::format("{} outside", result.with_interval - result.covered));
  }
  return missed;
}

struct Verdict {
  std::optional<bool> met;  // absent: nothing is asked, or nothing answered
  std::string words;
};

Verdict VerdictOf(const PublishedGroup::Limit& limit,
                  const GroupResult& result) {
  if (LimitText(limit) == "none set") return {{}, "-"};
  if (result.empty()) return {false, "missed: no row is answered"};
  const std::vector<std::string> missed = MissesOf(limit, result);
  if (missed.empty()) return {true, "met"};
  return {false, fmt::format("missed: {}", fmt::join(missed, ", "))};
}

bool IsLimited(const PublishedGroup& group) {
  return LimitText(group.as_shipped) != "none set" ||
         LimitText(group.leave_one_out) != "none set";
}

std::vector<Column> GroupColumns() {
  return {{"group", "group", Align::kLeft},
          {"protocol", "protocol", Align::kLeft},
          {"rows", "n_stated", Align::kRight},
          {"median", "median_stated", Align::kDecimal},
          {"worst", "max_stated", Align::kDecimal},
          {"with inferred", "n", Align::kRight},
          {"median", "median", Align::kDecimal},
          {"worst", "max", Align::kDecimal},
          {"bias", "bias", Align::kDecimal},
          {"right", "right", Align::kLeft},
          {"refused", "refused", Align::kRight},
          {"inside 80 %", "covered", Align::kLeft},
          {"seen by fit", "seen", Align::kRight},
          {"free parameters", "parameters", Align::kRight},
          {"chosen on these rows", "chosen", Align::kLeft},
          {"limit", "limit", Align::kLeft},
          {"verdict", "verdict", Align::kLeft}};
}

// Long because it is a row of a table: a statement a cell.
std::vector<Cell> GroupCells(const PublishedGroup& group,
                             PublishedProtocol protocol,
                             const PublishedGroup::Limit& limit,
                             const GroupResult& r,
                             const Verdict& verdict) {
  const Cell none("-", std::string());
  const char* unit = r.measure == PublishedMeasure::kPercent ? "%" : "pt";
  const auto number = [&](const ErrorSummary& of, double value) {
    return of.count == 0 ? none
                         : Cell(fmt::format("{:.1f} {}", value, unit), value);
  };
  const auto share = [&](int64_t part, int64_t whole) {
    return whole == 0 ? none : Cell(fmt::format("{} of {}", part, whole));
  };
  return {group.title,
          std::string(ToText(protocol)),
          CountCell(r.stated.count),
          number(r.stated, r.stated.median),
          number(r.stated, r.stated.max),
          CountCell(r.all.count),
          number(r.all, r.all.median),
          number(r.all, r.all.max),
          number(r.all, r.all.bias),
          share(r.right, r.judged),
          CountCell(r.refused),
          share(r.covered, r.with_interval),
          CountCell(r.seen),
          CountCell(r.parameters),
          group.chosen,
          LimitText(limit),
          verdict.words};
}

Json GroupJson(const PublishedGroup& group,
               PublishedProtocol protocol,
               const PublishedGroup::Limit& limit,
               const GroupResult& r,
               const Verdict& verdict) {
  Json json;
  json["group"] = group.name;
  json["title"] = group.title;
  json["protocol"] = ToText(protocol);
  json["measure"] = ToText(r.measure);
  json.update(ToJson(r.all));
  json["stated"] = ToJson(r.stated);
  json["judged"] = r.judged;
  json["right"] = r.right;
  json["refused"] = r.refused;
  json["with_interval"] = r.with_interval;
  json["inside_interval"] = r.covered;
  json["seen_by_fit"] = r.seen;
  json["free_parameters"] = r.parameters;
  json["chosen_on_these_rows"] = group.chosen;
  json["limit"] = LimitText(limit);
  json["met"] = OrNull(verdict.met);
  json["verdict"] = verdict.words;
  return json;
}

// What became of all limits.
struct Limits {
  int64_t set = 0;
  int64_t met = 0;
  void Add(const Verdict& verdict) {
    if (!verdict.met) return;
    ++set;
    if (*verdict.met) ++met;
  }
};

// Orders of devices, as a group of their own.
GroupResult RankResult(const std::vector<PublishedRank>& ranks,
                       std::string_view quantity) {
  GroupResult result;
  for (const PublishedRank& rank : ranks) {
    if (rank.quantity != quantity) continue;
    ++result.judged;
    if (rank.right) ++result.right;
  }
  return result;
}

PublishedGroup RankGroup(std::string_view quantity, std::string_view title) {
  PublishedGroup group;
  group.name = fmt::format("order_by_{}", quantity);
  group.title = title;
  group.as_shipped.all_right = group.leave_one_out.all_right = true;
  group.chosen = "no";
  return group;
}

std::string AnswerText(const PublishedRow& row, const PublishedAnswer& answer) {
  if (answer.fits) return *answer.fits ? "fits" : "does not fit";
  if (!answer.value) return "-";
  std::string text = FigureText(row.quantity, *answer.value);
  if (answer.low) {
    text += fmt::format(" ({} .. {})",
                        FigureText(row.quantity, *answer.low),
                        FigureText(row.quantity, *answer.high));
  }
  return text;
}

Json AnswerJson(const PublishedPrediction& prediction,
                const std::optional<PublishedError>& error) {
  Json json;
  json["predicted"] = OrNull(prediction.answer.value);
  json["predicted_low"] = OrNull(prediction.answer.low);
  json["predicted_high"] = OrNull(prediction.answer.high);
  json["fits"] = OrNull(prediction.answer.fits);
  if (error) {
    json["measure"] = ToText(error->measure);
    json["error"] = error->error;
    json["right"] = error->right;
    json["covered"] = OrNull(error->covered);
  }
  json["refused"] = prediction.refused;
  json["seen_by_fit"] = prediction.seen;
  json["how"] = prediction.how;
  json["reason"] =
      prediction.reason.empty() ? Json(nullptr) : Json(prediction.reason);
  return json;
}

// All that the report is made of.
struct Result {
  const Published& published;
  std::vector<size_t> rows;      // that were asked for
  std::vector<Answers> answers;  // a protocol each
};

Json RowJson(const Result& result, size_t i) {
  const PublishedRow& row = result.published.rows[i];
  const PublishedRun& run = result.published.RunOf(row);
  Json json;
  json["label"] = row.id;
  json["group"] = row.group;
  json["device"] = OrNull(run.device);
  json["devices"] = run.device_count;
  json["quantity"] = row.quantity;
  json["unit"] = calibrate::FindQuantity(row.quantity).measure.unit;
  json["printed"] = row.value.text;
  json["measured"] = row.value.low;
  json["use"] = calibrate::ToText(row.use);
  json["inferred"] = IsInferred(run);
  json["assumed"] = Json::object();
  for (const auto& [key, why] : run.assumed) json["assumed"][key] = why;
  for (const Answers& answers : result.answers) {
    json[std::string(ToText(answers.protocol))] =
        AnswerJson(answers.predictions.rows[i], answers.errors[i]);
  }
  json["source"] = row.records;
  return json;
}

// Every row of a protocol's predictions; without an answer, why.
Table RowTable(const Result& result) {
  Table table;
  table.columns = {{"row", "label", Align::kLeft},
                   {"group", "group", Align::kLeft, 4},
                   {"device", "device", Align::kLeft, 1},
                   {"quantity", "quantity", Align::kLeft},
                   {"printed", "printed_base", Align::kRight},
                   {"as shipped", "as_shipped", Align::kRight},
                   {"error", "as_shipped_error", Align::kDecimal},
                   {"left out", "left_out", Align::kRight},
                   {"error", "left_out_error", Align::kDecimal},
                   {"inferred", "inferred", Align::kLeft, 5},
                   {"seen by fit", "seen", Align::kLeft, 2},
                   {"from", "how", Align::kLeft, 3}};
  const Cell none("-", std::string());
  for (const size_t i : result.rows) {
    const PublishedRow& row = result.published.rows[i];
    const PublishedRun& run = result.published.RunOf(row);
    const PublishedPrediction& shipped =
        result.answers.front().predictions.rows[i];
    if (shipped.checks_data) continue;
    std::vector<Cell> cells = {row.id,
                               row.group,
                               run.device ? Cell(*run.device) : none,
                               row.quantity,
                               Cell(row.value.text, row.value.low)};
    for (const Answers& answers : result.answers) {
      const PublishedPrediction& p = answers.predictions.rows[i];
      const auto& error = answers.errors[i];
      cells.push_back(p.predicted() ? Cell(AnswerText(row, p.answer),
                                           p.answer.value.value_or(0))
                                    : none);
      cells.push_back(error ? Cell(ErrorText(*error), error->error) : none);
    }
    cells.push_back(IsInferred(run) ? "yes" : "no");
    cells.push_back(shipped.seen ? "yes" : "no");
    cells.push_back(shipped.reason.empty() ? Cell(shipped.how)
                                           : Cell(shipped.reason));
    table.Add(std::move(cells));
  }
  return table;
}

// What follows from printed figures alone, a row a group.
Table CheckTable(const Result& result, Json& list) {
  Table table;
  table.title = "Checks of the data: arithmetic on printed figures";
  table.columns = {{"group", "group", Align::kLeft},
                   {"rows", "n", Align::kRight},
                   {"to the printed digits", "right", Align::kRight}};
  for (const PublishedGroup& group : result.published.groups) {
    int64_t rows = 0;
    int64_t right = 0;
    for (const size_t i : result.rows) {
      const Answers& answers = result.answers.front();
      if (result.published.rows[i].group != group.name ||
          !answers.predictions.rows[i].checks_data || !answers.errors[i]) {
        continue;
      }
      ++rows;
      if (answers.errors[i]->right) ++right;
    }
    if (rows == 0) continue;
    table.Add({group.title, CountCell(rows), CountCell(right)});
    list.push_back({{"group", group.name}, {"n", rows}, {"right", right}});
  }
  return table;
}

// Groups under both protocols, and the order of devices.
Table GroupTable(const Result& result, Json& list, Limits& limits) {
  Table table;
  table.title = "Groups";
  table.columns = GroupColumns();
  const auto add = [&](const PublishedGroup& group,
                       const Answers& answers,
                       const GroupResult& of_group,
                       bool asked) {
    // What something is asked of, and nothing is answered, is not left out.
    if (of_group.empty() && !asked) return;
    const PublishedGroup::Limit& limit =
        answers.protocol == PublishedProtocol::kAsShipped ? group.as_shipped
                                                          : group.leave_one_out;
    const Verdict verdict = VerdictOf(limit, of_group);
    limits.Add(verdict);
    table.Add(GroupCells(group, answers.protocol, limit, of_group, verdict));
    list.push_back(
        GroupJson(group, answers.protocol, limit, of_group, verdict));
  };
  for (const PublishedGroup& group : result.published.groups) {
    std::vector<size_t> rows;
    for (const size_t i : result.rows) {
      if (result.published.rows[i].group == group.name) rows.push_back(i);
    }
    for (const Answers& answers : result.answers) {
      GroupResult of_group = ResultOf(result.published, answers, rows);
      const auto& free = answers.predictions.free_parameters;
      const auto found = free.find(group.name);
      of_group.parameters = found == free.end() ? 0 : found->second;
      add(group, answers, of_group, !rows.empty() && IsLimited(group));
    }
  }
  const std::array<std::pair<std::string_view, std::string_view>, 2> orders = {
      {{"run_time", "order of devices by time"},
       {"cost", "order of devices by cost"}}};
  for (const auto& [quantity, title] : orders) {
    for (const Answers& answers : result.answers) {
      add(RankGroup(quantity, title),
          answers,
          RankResult(answers.ranks, quantity),
          false);
    }
  }
  return table;
}

// Percent errors of a protocol, of rows that nothing was inferred for or all.
ErrorSummary Overall(const Result& result, PublishedProtocol protocol) {
  std::vector<RowError> errors;
  for (const Answers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    for (const size_t i : result.rows) {
      const auto& error = answers.errors[i];
      if (!error || error->measure != PublishedMeasure::kPercent) continue;
      errors.push_back({error->error, error->covered});
    }
  }
  return Summarise(errors);
}

// How many answers with an 80 % interval have it around the figure, whatever
// they are of; those without one are counted apart.
struct Coverage {
  int64_t with_interval = 0;
  int64_t inside = 0;
  int64_t without = 0;
};

Coverage CoverageOf(const Result& result, PublishedProtocol protocol) {
  Coverage coverage;
  for (const Answers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    for (const size_t i : result.rows) {
      const auto& error = answers.errors[i];
      if (!error || error->measure == PublishedMeasure::kExact ||
          error->measure == PublishedMeasure::kOutcome) {
        continue;
      }
      if (!error->covered) {
        ++coverage.without;
        continue;
      }
      ++coverage.with_interval;
      if (*error->covered) ++coverage.inside;
    }
  }
  return coverage;
}

Json ToJson(const Coverage& coverage) {
  return {{"with_interval", coverage.with_interval},
          {"inside", coverage.inside},
          {"without_interval", coverage.without}};
}

void AddNotes(const Result& result, Report& report) {
  report.notes.emplace_back(
      "as-shipped: what `predict` answers for FILE.yaml#run; leave-one-out: "
      "the same with a fit to the other runs of the device in its document, "
      "without any figure of the run or its twin");
  report.notes.emplace_back(
      "rows whose run has an assumption of its own (batch, length, precision, "
      "optimizer, device) count under \"with inferred\" alone; limits are "
      "about all");
  for (const Answers& answers : result.answers) {
    for (const PublishedRank& rank : answers.ranks) {
      if (rank.right) continue;
      report.notes.push_back(
          fmt::format("{}: order of {} and {} by {} in {} is wrong",
                      ToText(answers.protocol),
                      rank.first,
                      rank.second,
                      rank.quantity,
                      rank.table));
    }
  }
  std::map<std::string, int64_t> reasons;
  for (const size_t i : result.rows) {
    const auto& p = result.answers.front().predictions.rows[i];
    if (!p.reason.empty()) ++reasons[p.reason];
  }
  for (const auto& [reason, count] : reasons) {
    report.notes.emplace_back(
        fmt::format("{} rows not predicted: {}", count, reason),
        Caution::kRowsSkipped);
  }
}

bool IsYaml(const fs::path& path) { return path.extension() == ".yaml"; }

std::string FolderOf(const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) return file;
  const fs::path parent = fs::path(file).parent_path();
  return parent.empty() ? "." : parent.string();
}

// A file stands for its rows; the other files' runs are still seen.
std::vector<size_t> RowsOf(const Published& published,
                           const std::vector<std::string>& files) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < published.rows.size(); ++i) {
    const std::string& position = published.rows[i].position;
    const fs::path file = position.substr(0, position.find(".yaml"));
    const bool asked =
        std::any_of(files.begin(), files.end(), [&](const auto& name) {
          return !IsYaml(name) || file.filename() == fs::path(name).stem();
        });
    if (asked) rows.push_back(i);
  }
  return rows;
}

PublishedProtocol ProtocolOf(Protocol protocol) {
  if (protocol == Protocol::kLeaveOneOut) {
    return PublishedProtocol::kLeaveOneOut;
  }
  if (protocol == Protocol::kAsShipped) return PublishedProtocol::kAsShipped;
  throw UsageError(
      "--protocol: expected as-shipped or leave-one-out for published figures; "
      "every row is of a run, which is left out whole");
}

}  // namespace

bool IsPublished(const std::vector<std::string>& files) {
  size_t published = 0;
  for (const std::string& file : files) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored) || IsYaml(file)) ++published;
  }
  if (published == 0) return false;
  if (published < files.size()) {
    throw UsageError(
        "expected measurement files or published figures, got both");
  }
  for (const std::string& file : files) {
    if (hardware::YamlFiles(FolderOf(file)).empty()) {
      throw InputError(
          file,
          0,
          0,
          "expected measurements (.jsonl, .csv) or a folder of published "
          "figures, got a folder without any .yaml");
    }
    if (FolderOf(file) != FolderOf(files.front())) {
      throw UsageError(
          "expected published figures of one folder: runs have one name in all "
          "its files");
    }
  }
  return true;
}

namespace {

std::string CoverageLine(std::string_view name, const Coverage& of) {
  const double share = of.with_interval == 0
                           ? 0.0
                           : static_cast<double>(of.inside) /
                                 static_cast<double>(of.with_interval);
  return fmt::format(
      "80 % intervals {}: {} of {} rows inside ({:.0f} %), {} "
      "without an interval",
      name,
      of.inside,
      of.with_interval,
      100.0 * share,
      of.without);
}

// Also says in the report how many are the best.
Json ChoicesJson(const Result& result,
                 PublishedProtocol protocol,
                 const DevicePrices& prices,
                 Report& report) {
  std::vector<MeasuredAnswer> runs;
  for (const Answers& answers : result.answers) {
    if (answers.protocol != protocol) continue;
    runs =
        MeasuredRuns(result.published, result.rows, answers.predictions.rows);
  }
  const std::vector<MeasuredChoice> choices = ChoicesOf(runs, prices.of_device);
  if (!choices.empty()) report.notes.emplace_back(ChoiceNote(choices));
  return ToJson(choices);
}

}  // namespace

Report ValidatePublished(const ValidateOptions& options) {
  const PublishedProtocol protocol = ProtocolOf(options.protocol);
  const std::string folder = FolderOf(options.files.front());
  const Published published = calibrate::LoadPublished(folder);
  Result result{published, RowsOf(published, options.files), {}};
  for (const PublishedProtocol one : kProtocols) {
    result.answers.push_back(AnswersOf(published, one));
  }
  Report report;
  Json groups = Json::array();
  Json checks = Json::array();
  Limits limits;
  report.tables.push_back(RowTable(result));
  report.tables.push_back(GroupTable(result, groups, limits));
  report.tables.push_back(CheckTable(result, checks));
  AddNotes(result, report);
  const ErrorSummary shipped = Overall(result, PublishedProtocol::kAsShipped);
  const ErrorSummary left_out =
      Overall(result, PublishedProtocol::kLeaveOneOut);
  report.headline.push_back(fmt::format(
      "{} rows of {}: {} of {} limits met; median error as shipped {:.1f} % of "
      "{}, left out {:.1f} % of {}",
      result.rows.size(),
      folder,
      limits.met,
      limits.set,
      shipped.median,
      shipped.count,
      left_out.median,
      left_out.count));
  const Coverage shipped_coverage =
      CoverageOf(result, PublishedProtocol::kAsShipped);
  const Coverage left_out_coverage =
      CoverageOf(result, PublishedProtocol::kLeaveOneOut);
  report.headline.push_back(CoverageLine("as shipped", shipped_coverage));
  report.headline.push_back(CoverageLine("left out", left_out_coverage));
  const ErrorSummary& overall =
      protocol == PublishedProtocol::kAsShipped ? shipped : left_out;
  Json json;
  json["overall"] = ToJson(overall);
  json["intervals"] = {{"as-shipped", ToJson(shipped_coverage)},
                       {"leave-one-out", ToJson(left_out_coverage)}};
  json["groups"] = std::move(groups);
  json["data_checks"] = std::move(checks);
  json["rows"] = Json::array();
  for (const size_t i : result.rows) json["rows"].push_back(RowJson(result, i));
  const DevicePrices prices = ShippedDevicePrices();
  json["choices"] = ChoicesJson(result, protocol, prices, report);
  json.update(ValidationHead(options, prices.sources));
  json["protocol"] = ToText(protocol);
  json["files"] = options.files;
  json["limits"] = limits.set;
  json["limits_met"] = limits.met;
  report.json = AnswerText(std::move(json), report);
  AnswerWithOverall(overall, report);
  return report;
}

}  // namespace trainfare::scenarios
