#include "scenarios/validation/error_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/records/statistics.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

double MetricOf(const ErrorSummary& s, std::string_view metric) {
  if (metric == "mape") return s.mape;
  if (metric == "median") return s.median;
  if (metric == "p90") return s.p90;
  if (metric == "max") return s.max;
  if (metric == "bias") return s.bias;
  ENSURE(metric == "coverage", "every metric has a value");
  return s.coverage;
}

bool Passed(const FailIf& limit, const ErrorSummary& summary) {
  const double value = MetricOf(summary, limit.metric);
  // What is no number cannot be shown to be within a limit.
  if (!std::isfinite(value)) return true;
  if (limit.inclusive && value == limit.limit) return true;
  return limit.above ? value > limit.limit : value < limit.limit;
}

}  // namespace

void CheckLimits(const std::vector<FailIf>& limits,
                 const ErrorSummary& overall,
                 Report& report) {
  if (overall.count == 0) {
    report.exit_code = kInput;
    report.complaint = "no row could be predicted; the result lists why";
    return;
  }
  std::vector<std::string> passed;
  for (const FailIf& limit : limits) {
    if (!Passed(limit, overall)) continue;
    passed.push_back(fmt::format("{} is {:.2f} %, limit {}",
                                 limit.metric,
                                 MetricOf(overall, limit.metric),
                                 limit.text));
  }
  if (!passed.empty()) {
    report.exit_code = kLimitPassed;
    report.complaint = fmt::format("--fail-if: {}", fmt::join(passed, "; "));
  }
}

std::vector<Cell> SummaryCells(const std::string& name, const ErrorSummary& s) {
  std::vector<Cell> cells = {
      name, Cell(fmt::format("{}", s.count), static_cast<double>(s.count))};
  const auto percent = [](double value, bool known) {
    return known ? Cell(fmt::format("{:.1f} %", value), value)
                 : Cell("-", std::string());
  };
  for (const double value : {s.mape, s.median, s.p90, s.max, s.bias}) {
    cells.push_back(percent(value, s.count > 0));
  }
  cells.push_back(percent(s.coverage, s.with_interval > 0));
  return cells;
}

std::vector<Column> SummaryColumns() {
  return {{"group", "group", Align::kLeft},
          {"rows", "n", Align::kRight},
          {"mean", "mape_percent", Align::kDecimal},
          {"median", "median_percent", Align::kDecimal},
          {"90 % below", "p90_percent", Align::kDecimal},
          {"worst", "max_percent", Align::kDecimal},
          {"bias", "bias_percent", Align::kDecimal},
          {"inside 80 %", "coverage_percent", Align::kDecimal}};
}

Json ToJson(const ErrorSummary& s) {
  const auto number = [&](double value) {
    return s.count > 0 ? Json(value) : Json(nullptr);
  };
  Json json;
  json["mape"] = number(s.mape);
  json["median"] = number(s.median);
  json["p90"] = number(s.p90);
  json["max"] = number(s.max);
  json["n"] = s.count;
  json["bias"] = number(s.bias);
  json["coverage"] = s.with_interval > 0 ? Json(s.coverage) : Json(nullptr);
  json["with_interval"] = s.with_interval;
  return json;
}

FailIf FailIfFromText(std::string_view text) {
  const auto refuse = [&] {
    throw UsageError(fmt::format(
        "--fail-if: expected a limit such as \"mape>5%\" of mape, median, p90, "
        "max, bias or coverage, got \"{}\"",
        text));
  };
  FailIf limit;
  limit.text = text;
  std::string compact;
  for (const char letter : text) {
    if (letter != ' ') compact += letter;
  }
  const size_t sign = compact.find_first_of("<>");
  if (sign == std::string::npos) refuse();
  limit.metric = compact.substr(0, sign);
  limit.above = compact[sign] == '>';
  size_t number = sign + 1;
  if (number < compact.size() && compact[number] == '=') {
    limit.inclusive = true;
    ++number;
  }
  std::string value = compact.substr(number);
  if (value.ends_with('%')) value.pop_back();
  const auto parsed = hardware::ParseNumber(value);
  static const std::set<std::string> metrics = {
      "mape", "median", "p90", "max", "bias", "coverage"};
  if (!parsed || !metrics.contains(limit.metric)) refuse();
  limit.limit = *parsed;
  return limit;
}

ErrorSummary Summarise(const std::vector<RowError>& rows) {
  ErrorSummary summary;
  summary.count = static_cast<int64_t>(rows.size());
  if (rows.empty()) return summary;
  std::vector<double> absolute;
  double covered = 0;
  for (const RowError& row : rows) {
    absolute.push_back(std::abs(row.error));
    summary.mape += std::abs(row.error);
    summary.bias += row.error;
    if (!row.covered) continue;
    ++summary.with_interval;
    if (*row.covered) ++covered;
  }
  const auto count = static_cast<double>(rows.size());
  summary.mape /= count;
  summary.bias /= count;
  if (summary.with_interval > 0) {
    summary.coverage =
        100.0 * covered / static_cast<double>(summary.with_interval);
  }
  summary.median = calibrate::Median(absolute);
  summary.p90 = calibrate::Percentile(absolute, 0.9);
  summary.max = *std::max_element(absolute.begin(), absolute.end());
  return summary;
}

}  // namespace trainfare::scenarios
