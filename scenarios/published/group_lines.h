#pragma once

// The rows of a group by what their errors are counted in, and what is asked of
// them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/published.h"
#include "scenarios/published/published_result.h"
#include "scenarios/validation/error_summary.h"

namespace trainfare::scenarios {

// What cannot be added up has a line each.
enum class LineMeasure { kPercent, kPoints, kRightOrWrong };

std::string_view ToText(LineMeasure measure);

// Rows of one group under one protocol; each is in one line.
struct GroupLine {
  LineMeasure measure = LineMeasure::kPercent;
  ErrorSummary stated;  // rows of which the document states all that moves them
  ErrorSummary all;
  int64_t judged = 0;  // right or wrong: outcomes, bounds, counts, orders
  int64_t right = 0;
  int64_t refused = 0;
  int64_t seen = 0;
  int64_t with_interval = 0;
  int64_t covered = 0;

  int64_t answered() const { return all.count + judged; }
};

// Lines that have a row, in the order of their measures.
std::vector<GroupLine> LinesOf(const calibrate::Published& published,
                               const JudgedAnswers& answers,
                               const std::vector<size_t>& rows);

// The same and, without a row, those that the group is asked something of.
std::vector<GroupLine> AskedLines(const calibrate::PublishedGroup& group,
                                  std::vector<GroupLine> lines);

// Orders of devices by a quantity.
GroupLine RankLine(const JudgedAnswers& answers, std::string_view quantity);

// What is asked under one protocol, if anything.
using AskedLimit = std::optional<calibrate::PublishedGroup::Limit>;

// What a group's limit asks of one of its lines. Percent are of errors in
// percent alone; what is wrong misses any limit, and so do refusals and
// intervals where they are asked for.
AskedLimit PartOf(const AskedLimit& of_group, LineMeasure measure);

std::string LimitText(const AskedLimit& asked);

struct Verdict {
  bool asked = false;
  std::vector<std::string> missed;  // "worst by 2.1", each; empty: met

  // nullopt: nothing is asked.
  std::optional<bool> met() const;
  std::string Words() const;
};

Verdict VerdictOf(const AskedLimit& limit, const GroupLine& line);

}  // namespace trainfare::scenarios
