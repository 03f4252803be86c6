#include "scenarios/published/published_groups.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedGroup;
using calibrate::PublishedRow;

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
                     const JudgedAnswers& answers,
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

// What is asked under one protocol, if anything.
using AskedLimit = std::optional<PublishedGroup::Limit>;

std::string LimitText(const AskedLimit& asked) {
  if (!asked) return "none set";
  const PublishedGroup::Limit& limit = *asked;
  std::vector<std::string> words;
  if (limit.median) words.push_back(fmt::format("median {} %", *limit.median));
  if (limit.worst) words.push_back(fmt::format("worst {} %", *limit.worst));
  if (limit.all_right) words.emplace_back("all right");
  if (limit.all_answered) words.emplace_back("none refused");
  if (limit.all_inside) words.emplace_back("all inside");
  return fmt::format("{}", fmt::join(words, ", "));
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

Verdict VerdictOf(const AskedLimit& limit, const GroupResult& result) {
  if (!limit) return {{}, "-"};
  if (result.empty()) return {false, "missed: no row is answered"};
  const std::vector<std::string> missed = MissesOf(*limit, result);
  if (missed.empty()) return {true, "met"};
  return {false, fmt::format("missed: {}", fmt::join(missed, ", "))};
}

bool IsLimited(const PublishedGroup& group) {
  return group.as_shipped.has_value() || group.leave_one_out.has_value();
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
                             const AskedLimit& limit,
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
               const AskedLimit& limit,
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
  PublishedGroup::Limit all_right;
  all_right.all_right = true;
  group.as_shipped = group.leave_one_out = all_right;
  group.chosen = "no";
  return group;
}

void CountLimit(const Verdict& verdict, LimitCount& limits) {
  if (!verdict.met) return;
  ++limits.set;
  if (*verdict.met) ++limits.met;
}

}  // namespace

Table GroupTable(const PublishedResult& result,
                 Json& list,
                 LimitCount& limits) {
  Table table;
  table.title = "Groups";
  table.columns = GroupColumns();
  const auto add = [&](const PublishedGroup& group,
                       const JudgedAnswers& answers,
                       const GroupResult& of_group,
                       bool asked) {
    // What something is asked of, and nothing is answered, is not left out.
    if (of_group.empty() && !asked) return;
    const AskedLimit& limit = answers.protocol == PublishedProtocol::kAsShipped
                                  ? group.as_shipped
                                  : group.leave_one_out;
    const Verdict verdict = VerdictOf(limit, of_group);
    CountLimit(verdict, limits);
    table.Add(GroupCells(group, answers.protocol, limit, of_group, verdict));
    list.push_back(
        GroupJson(group, answers.protocol, limit, of_group, verdict));
  };
  for (const PublishedGroup& group : result.published.groups) {
    std::vector<size_t> rows;
    for (const size_t i : result.rows) {
      if (result.published.rows[i].group == group.name) rows.push_back(i);
    }
    for (const JudgedAnswers& answers : result.answers) {
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
    for (const JudgedAnswers& answers : result.answers) {
      add(RankGroup(quantity, title),
          answers,
          RankResult(answers.ranks, quantity),
          false);
    }
  }
  return table;
}

Table CheckTable(const PublishedResult& result, Json& list) {
  Table table;
  table.title = "Checks of the data: arithmetic on printed figures";
  table.columns = {{"group", "group", Align::kLeft},
                   {"rows", "n", Align::kRight},
                   {"to the printed digits", "right", Align::kRight}};
  for (const PublishedGroup& group : result.published.groups) {
    int64_t rows = 0;
    int64_t right = 0;
    for (const size_t i : result.rows) {
      const JudgedAnswers& answers = result.answers.front();
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

}  // namespace trainfare::scenarios
