#include "scenarios/published/group_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedGroup;
using calibrate::PublishedRow;

LineMeasure LineOf(PublishedMeasure measure) {
  switch (measure) {
    case PublishedMeasure::kPercent:
      return LineMeasure::kPercent;
    case PublishedMeasure::kPoints:
      return LineMeasure::kPoints;
    case PublishedMeasure::kExact:
    case PublishedMeasure::kOutcome:
    case PublishedMeasure::kBound:
      return LineMeasure::kRightOrWrong;
  }
  ENSURE(false, "a measure without a line");
}

// A line as its rows come in.
struct OpenLine {
  GroupLine line;
  std::vector<RowError> all;
  std::vector<RowError> stated;
};

void AddToLine(const PublishedPrediction& prediction,
               const PublishedError& error,
               bool inferred,
               OpenLine& open) {
  GroupLine& line = open.line;
  if (prediction.seen) ++line.seen;
  if (error.covered) {
    ++line.with_interval;
    if (*error.covered) ++line.covered;
  }
  if (LineOf(error.measure) == LineMeasure::kRightOrWrong) {
    ++line.judged;
    if (error.right) ++line.right;
    return;
  }
  const RowError of_row{error.error, error.covered};
  open.all.push_back(of_row);
  if (!inferred) open.stated.push_back(of_row);
}

// By how much a limit is missed; empty: met.
std::vector<std::string> MissesOf(const PublishedGroup::Limit& limit,
                                  const GroupLine& line) {
  std::vector<std::string> missed;
  const auto check = [&](std::string_view what,
                         const std::optional<double>& most,
                         double value) {
    if (most && value > *most) {
      missed.push_back(fmt::format("{} by {:.1f}", what, value - *most));
    }
  };
  check("median", limit.median, line.all.median);
  check("worst", limit.worst, line.all.max);
  if (limit.all_right && line.right < line.judged) {
    missed.push_back(fmt::format("{} wrong", line.judged - line.right));
  }
  if (limit.all_answered && line.refused > 0) {
    missed.push_back(fmt::format("{} refused", line.refused));
  }
  if (limit.all_inside && line.covered < line.with_interval) {
    missed.push_back(
        fmt::format("{} outside", line.with_interval - line.covered));
  }
  return missed;
}

}  // namespace

std::string_view ToText(LineMeasure measure) {
  switch (measure) {
    case LineMeasure::kPercent:
      return "percent";
    case LineMeasure::kPoints:
      return "points";
    case LineMeasure::kRightOrWrong:
      return "right_or_wrong";
  }
  ENSURE(false, "a line without a name");
}

std::vector<GroupLine> LinesOf(const Published& published,
                               const JudgedAnswers& answers,
                               const std::vector<size_t>& rows) {
  std::map<LineMeasure, OpenLine> open;
  for (const size_t i : rows) {
    const PublishedRow& row = published.rows[i];
    const PublishedPrediction& prediction = answers.predictions.rows[i];
    if (prediction.checks_data) continue;
    const auto& error = answers.errors[i];
    if (!error && !prediction.refused) continue;
    OpenLine& of_row = open[LineOf(MeasureOf(row, prediction))];
    if (prediction.refused) ++of_row.line.refused;
    if (!error) continue;
    AddToLine(prediction, *error, IsInferred(published.RunOf(row)), of_row);
  }
  std::vector<GroupLine> lines;
  for (auto& [measure, of_rows] : open) {
    of_rows.line.measure = measure;
    of_rows.line.all = Summarise(of_rows.all);
    of_rows.line.stated = Summarise(of_rows.stated);
    lines.push_back(of_rows.line);
  }
  return lines;
}

std::vector<GroupLine> AskedLines(const PublishedGroup& group,
                                  std::vector<GroupLine> lines) {
  const auto require = [&lines](LineMeasure measure) {
    const auto place = std::find_if(
        lines.begin(), lines.end(), [measure](const GroupLine& line) {
          return line.measure >= measure;
        });
    if (place != lines.end() && place->measure == measure) return;
    GroupLine empty;
    empty.measure = measure;
    lines.insert(place, empty);
  };
  // Under both protocols, also where only one asks.
  for (const AskedLimit& limit : {group.as_shipped, group.leave_one_out}) {
    if (!limit) continue;
    if (limit->median || limit->worst) require(LineMeasure::kPercent);
    if (limit->all_right) require(LineMeasure::kRightOrWrong);
  }
  return lines;
}

GroupLine RankLine(const JudgedAnswers& answers, std::string_view quantity) {
  GroupLine line;
  line.measure = LineMeasure::kRightOrWrong;
  for (const PublishedRank& rank : answers.ranks) {
    if (rank.quantity != quantity) continue;
    ++line.judged;
    if (rank.right) ++line.right;
    const auto seen = [&](size_t row) {
      return answers.predictions.rows[row].seen;
    };
    if (std::any_of(rank.rows.begin(), rank.rows.end(), seen)) ++line.seen;
  }
  return line;
}

AskedLimit PartOf(const AskedLimit& of_group, LineMeasure measure) {
  if (!of_group) return std::nullopt;
  PublishedGroup::Limit part;
  part.all_answered = of_group->all_answered;
  part.all_inside = of_group->all_inside;
  if (measure == LineMeasure::kPercent) {
    part.median = of_group->median;
    part.worst = of_group->worst;
  }
  part.all_right = measure == LineMeasure::kRightOrWrong;
  if (part == PublishedGroup::Limit()) return std::nullopt;
  return part;
}

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

std::optional<bool> Verdict::met() const {
  return asked ? std::optional(missed.empty()) : std::nullopt;
}

std::string Verdict::Words() const {
  if (!asked) return "-";
  if (missed.empty()) return "met";
  return fmt::format("missed: {}", fmt::join(missed, ", "));
}

Verdict VerdictOf(const AskedLimit& limit, const GroupLine& line) {
  if (!limit) return {};
  std::vector<std::string> missed = MissesOf(*limit, line);
  if (line.answered() == 0) {
    missed.insert(missed.begin(), "no row is answered");
  }
  return {true, std::move(missed)};
}

}  // namespace trainfare::scenarios
