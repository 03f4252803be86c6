#include "scenarios/published/published_groups.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/published/group_lines.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::PublishedGroup;

// A group under one protocol: what its lines have in common.
struct GroupPart {
  const PublishedGroup& group;
  PublishedProtocol protocol = PublishedProtocol::kAsShipped;
  std::vector<GroupLine> lines;
  int64_t parameters = 0;  // that the fits behind its answers determine

  const AskedLimit& limit() const {
    return protocol == PublishedProtocol::kAsShipped ? group.as_shipped
                                                     : group.leave_one_out;
  }
};

std::vector<Column> GroupColumns() {
  return {{"group", "group", Align::kLeft},
          {"protocol", "protocol", Align::kLeft},
          {"measure", "measure", Align::kLeft},
          {"rows", "n", Align::kRight},
          {"median", "median", Align::kDecimal},
          {"worst", "max", Align::kDecimal},
          {"bias", "bias", Align::kDecimal},
          {"stated", "n_stated", Align::kRight},
          {"median", "median_stated", Align::kDecimal},
          {"worst", "max_stated", Align::kDecimal},
          {"right", "right", Align::kLeft},
          {"refused", "refused", Align::kRight},
          {"inside 80 %", "covered", Align::kLeft},
          {"seen by fit", "seen", Align::kRight},
          {"free parameters", "parameters", Align::kRight},
          {"chosen on these rows", "chosen", Align::kLeft},
          {"limit", "limit", Align::kLeft},
          {"verdict", "verdict", Align::kLeft}};
}

// For people: words of it.
std::string MeasureWords(LineMeasure measure) {
  return measure == LineMeasure::kRightOrWrong ? "right or wrong"
                                               : std::string(ToText(measure));
}

// Long because it is a row of a table: a statement a cell.
std::vector<Cell> LineCells(const GroupPart& part,
                            const GroupLine& line,
                            const AskedLimit& limit,
                            const Verdict& verdict) {
  const Cell none("-", std::string());
  const char* unit = line.measure == LineMeasure::kPercent ? "%" : "pt";
  const auto number = [&](const ErrorSummary& of, double value) {
    return of.count == 0 ? none
                         : Cell(fmt::format("{:.1f} {}", value, unit), value);
  };
  const auto share = [&](int64_t some, int64_t whole) {
    return whole == 0 ? none : Cell(fmt::format("{} of {}", some, whole));
  };
  return {part.group.title,
          std::string(ToText(part.protocol)),
          MeasureWords(line.measure),
          CountCell(line.answered()),
          number(line.all, line.all.median),
          number(line.all, line.all.max),
          number(line.all, line.all.bias),
          CountCell(line.stated.count),
          number(line.stated, line.stated.median),
          number(line.stated, line.stated.max),
          share(line.right, line.judged),
          CountCell(line.refused),
          share(line.covered, line.with_interval),
          CountCell(line.seen),
          CountCell(part.parameters),
          part.group.chosen,
          LimitText(limit),
          verdict.Words()};
}

// What is asked of a line's errors; null: nothing is.
Json AskedJson(const AskedLimit& limit) {
  if (!limit) return nullptr;
  return {{"median_percent", OrNull(limit->median)},
          {"worst_percent", OrNull(limit->worst)},
          {"all_right", limit->all_right},
          {"all_answered", limit->all_answered},
          {"all_inside", limit->all_inside}};
}

Json LineJson(const GroupPart& part,
              const GroupLine& line,
              const AskedLimit& limit,
              const Verdict& verdict) {
  Json json;
  json["group"] = part.group.name;
  json["title"] = part.group.title;
  json["protocol"] = ToText(part.protocol);
  json["measure"] = ToText(line.measure);
  json.update(ToJson(line.all));
  json["stated"] = ToJson(line.stated);
  json["judged"] = line.judged;
  json["right"] = line.right;
  json["refused"] = line.refused;
  json["with_interval"] = line.with_interval;
  json["inside_interval"] = line.covered;
  json["seen_by_fit"] = line.seen;
  json["free_parameters"] = part.parameters;
  json["chosen_on_these_rows"] = part.group.chosen;
  json["limit"] = LimitText(limit);
  json["asked"] = AskedJson(limit);
  json["met"] = OrNull(verdict.met());
  json["missed"] = verdict.missed;
  json["verdict"] = verdict.Words();
  return json;
}

// Groups of the rows whose answers devices are ordered by.
std::set<std::string> GroupsBehind(const PublishedResult& result,
                                   const JudgedAnswers& answers,
                                   std::string_view quantity) {
  std::set<std::string> groups;
  for (const PublishedRank& rank : answers.ranks) {
    if (rank.quantity != quantity) continue;
    for (const size_t row : rank.rows) {
      groups.insert(result.published.rows[row].group);
    }
  }
  return groups;
}

// What was chosen on any of the groups behind an order was chosen on it.
std::string ChosenOn(const PublishedResult& result,
                     const std::set<std::string>& groups) {
  std::string chosen = "no";
  for (const PublishedGroup& group : result.published.groups) {
    if (!groups.contains(group.name) || chosen == "yes") continue;
    if (group.chosen != "no") chosen = group.chosen;
  }
  return chosen;
}

PublishedGroup RankGroup(std::string_view quantity,
                         std::string_view title,
                         std::string chosen) {
  PublishedGroup group;
  group.name = fmt::format("order_by_{}", quantity);
  group.title = title;
  PublishedGroup::Limit all_right;
  all_right.all_right = true;
  group.as_shipped = group.leave_one_out = all_right;
  group.chosen = std::move(chosen);
  return group;
}

// How many parameters fits determine behind answers of these groups.
int64_t ParametersBehind(const JudgedAnswers& answers,
                         const std::set<std::string>& groups) {
  std::set<std::string> names;
  for (const auto& [group, of_group] : answers.predictions.free_parameters) {
    if (groups.contains(group)) names.insert(of_group.begin(), of_group.end());
  }
  return static_cast<int64_t>(names.size());
}

// A line each; the limit of the group is one, which all of them meet.
void AddLines(const GroupPart& part,
              Table& table,
              Json& list,
              LimitCount& limits) {
  bool asked = false;
  bool met = true;
  for (const GroupLine& line : part.lines) {
    const AskedLimit limit = PartOf(part.limit(), line.measure);
    const Verdict verdict = VerdictOf(limit, line);
    asked = asked || verdict.asked;
    met = met && verdict.missed.empty();
    table.Add(LineCells(part, line, limit, verdict));
    list.push_back(LineJson(part, line, limit, verdict));
  }
  if (!asked) return;
  ++limits.set;
  if (met) ++limits.met;
}

}  // namespace

Table GroupTable(const PublishedResult& result,
                 Json& list,
                 LimitCount& limits) {
  Table table;
  table.title = "Groups";
  table.columns = GroupColumns();
  for (const PublishedGroup& group : result.published.groups) {
    std::vector<size_t> rows;
    for (const size_t i : result.rows) {
      if (result.published.rows[i].group == group.name) rows.push_back(i);
    }
    if (rows.empty()) continue;
    for (const JudgedAnswers& answers : result.answers) {
      // What something is asked of, and nothing is answered, is not left out.
      AddLines({group,
                answers.protocol,
                AskedLines(group, LinesOf(result.published, answers, rows)),
                ParametersBehind(answers, {group.name})},
               table,
               list,
               limits);
    }
  }
  const std::array<std::pair<std::string_view, std::string_view>, 2> orders = {
      {{"run_time", "order of devices by time"},
       {"cost", "order of devices by cost"}}};
  for (const auto& [quantity, title] : orders) {
    for (const JudgedAnswers& answers : result.answers) {
      const GroupLine line = RankLine(answers, quantity);
      if (line.judged == 0) continue;
      const std::set<std::string> behind =
          GroupsBehind(result, answers, quantity);
      const PublishedGroup group =
          RankGroup(quantity, title, ChosenOn(result, behind));
      AddLines(
          {group, answers.protocol, {line}, ParametersBehind(answers, behind)},
          table,
          list,
          limits);
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
