#include "scenarios/validation/error_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {

namespace {

// The name, the count and the figures.
std::vector<Cell> SummaryCells(const std::string& name, const ErrorSummary& s) {
  std::vector<Cell> cells = {name, CountCell(s.count)};
  const auto percent = [](double value, bool known) {
    return known ? Cell(fmt::format("{:.1f} %", value), value)
                 : Cell("-", std::string());
  };
  for (const double value : {s.mape, s.median, s.p90, s.max, s.bias}) {
    cells.push_back(percent(value, s.count > 0));
  }
  cells.push_back(percent(s.coverage, s.with_interval > 0));
  cells.push_back(percent(s.coverage_95, s.with_interval_95 > 0));
  return cells;
}

// The headings of such rows.
std::vector<Column> SummaryColumns(std::string_view heading) {
  return {{std::string(heading), "group", Align::kLeft},
          {"rows", "n", Align::kRight},
          {"mean", "mape_percent", Align::kDecimal, 3},
          {"median", "median_percent", Align::kDecimal},
          {"90 % below", "p90_percent", Align::kDecimal, 4},
          {"worst", "max_percent", Align::kDecimal, 1},
          {"bias", "bias_percent", Align::kDecimal, 2},
          {"inside 80 %", "coverage_percent", Align::kDecimal},
          {"inside 95 %", "coverage_95_percent", Align::kDecimal, 5}};
}

// Percent of the rows that are inside, and how many have such an interval.
std::pair<double, int64_t> Coverage(const std::vector<RowError>& rows,
                                    std::optional<bool> RowError::*covered) {
  int64_t with = 0;
  int64_t inside = 0;
  for (const RowError& row : rows) {
    if (!(row.*covered)) continue;
    ++with;
    if (*(row.*covered)) ++inside;
  }
  if (with == 0) return {0.0, 0};
  return {100.0 * static_cast<double>(inside) / static_cast<double>(with),
          with};
}

}  // namespace

void AnswerWithOverall(const ErrorSummary& overall, Report& report) {
  report.answers = {"/overall"};
  report.answers_in_percent = true;
  if (overall.count > 0) return;
  report.exit_code = kInput;
  report.complaint = "no row could be predicted; the result lists why";
}

Table SummaryTable(
    std::string_view heading,
    const ErrorGroups& groups,
    const std::vector<std::pair<std::string, ErrorSummary>>& totals) {
  Table table;
  table.columns = SummaryColumns(heading);
  for (const auto& [name, members] : groups) {
    table.Add(SummaryCells(name, Summarise(members)));
  }
  for (const auto& [name, summary] : totals) {
    table.Add(SummaryCells(name, summary));
  }
  table.marked = table.rows.size() - 1;
  return table;
}

ErrorSummary Summarise(const std::vector<RowError>& rows) {
  ErrorSummary summary;
  summary.count = static_cast<int64_t>(rows.size());
  if (rows.empty()) return summary;
  std::vector<double> absolute;
  for (const RowError& row : rows) {
    absolute.push_back(std::abs(row.error));
    summary.mape += std::abs(row.error);
    summary.bias += row.error;
  }
  const auto count = static_cast<double>(rows.size());
  summary.mape /= count;
  summary.bias /= count;
  std::tie(summary.coverage, summary.with_interval) =
      Coverage(rows, &RowError::covered);
  std::tie(summary.coverage_95, summary.with_interval_95) =
      Coverage(rows, &RowError::covered_95);
  summary.median = calibrate::Median(absolute);
  summary.p90 = calibrate::Percentile(absolute, 0.9);
  summary.max = *std::max_element(absolute.begin(), absolute.end());
  return summary;
}

}  // namespace trainfare::scenarios
