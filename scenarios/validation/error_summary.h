#pragma once

// Errors of many predictions in a few numbers, and limits on them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Errors in percent of the measured time; bias is the mean of signed errors.
struct ErrorSummary {
  int64_t count = 0;
  double mape = 0;  // mean absolute percentage error
  double median = 0;
  double p90 = 0;
  double max = 0;
  double bias = 0;
  double coverage = 0;  // percent of rows with an 80 % interval, inside it
  int64_t with_interval = 0;
  double coverage_95 = 0;  // the same of 95 % intervals
  int64_t with_interval_95 = 0;
};

struct RowError {
  double error = 0;             // percent, signed
  std::optional<bool> covered;  // by 80 %; absent: it has no interval
  std::optional<bool> covered_95 = std::nullopt;
};
ErrorSummary Summarise(const std::vector<RowError>& rows);

// By what stands together.
using ErrorGroups = std::map<std::string, std::vector<RowError>>;

// A row for each group, the name, the count and the figures; below them
// those of `totals`, the last of them marked. `heading`: over the names.
Table SummaryTable(
    std::string_view heading,
    const ErrorGroups& groups,
    const std::vector<std::pair<std::string, ErrorSummary>>& totals);

// Makes the "overall" of the report's JSON what limits are on, and sets exit
// code and complaint where no row could be predicted.
void AnswerWithOverall(const ErrorSummary& overall, Report& report);

}  // namespace trainfare::scenarios
