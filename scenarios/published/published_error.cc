// How a published row and an answer are held against each other.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "calibrate/records/import/published_quantity.h"
#include "calibrate/records/observation.h"
#include "model/error.h"
#include "scenarios/published/published_job.h"
#include "scenarios/published/published_validation.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using calibrate::PublishedUse;
using calibrate::PublishedValue;

PublishedMeasure MeasureOf(const PublishedRow& row,
                           const PublishedPrediction& prediction) {
  if (prediction.checks_data || row.quantity == "launches") {
    return PublishedMeasure::kExact;
  }
  switch (row.value.kind) {
    case PublishedValue::Kind::kOutcome:
      return PublishedMeasure::kOutcome;
    case PublishedValue::Kind::kAtLeast:
    case PublishedValue::Kind::kAtMost:
    case PublishedValue::Kind::kRange:
      return PublishedMeasure::kBound;
    case PublishedValue::Kind::kNumber:
      break;
  }
  if (row.quantity == "largest_batch" || row.quantity == "failing_batch") {
    return PublishedMeasure::kOutcome;
  }
  return calibrate::FindQuantity(row.quantity).measure.share
             ? PublishedMeasure::kPoints
             : PublishedMeasure::kPercent;
}

// Between the largest that ran and the next that was tried; twice the largest
// where that is not printed.
bool BatchIsRight(const Published& published,
                  const PublishedRow& row,
                  double value) {
  const double printed = row.value.low;
  if (row.quantity != "largest_batch") return value < printed;
  const std::string part = row.part ? "/" + *row.part : "";
  const PublishedRow* failing =
      published.Find(row.run + "/failing_batch" + part);
  const double next = failing != nullptr ? failing->value.low : 2 * printed;
  return value >= printed && value < next;
}

// Whether an answer from `low` to `high` is within what the figure is known to.
bool WithinDigits(const PublishedRow& row, double low, double high) {
  const PublishedValue& printed = row.value;
  // Printed digits are decimal: the last of them is not lost to rounding.
  const double known = printed.tolerance * (1 + 1e-9);
  switch (printed.kind) {
    case PublishedValue::Kind::kAtLeast:
      return high >= printed.low - known;
    case PublishedValue::Kind::kAtMost:
      return low <= printed.high + known;
    default:
      return low <= printed.high + known && high >= printed.low - known;
  }
}

// The table that a row stands in: "table 4.16" of its document.
std::vector<std::string> TablesOf(const PublishedRow& row) {
  std::vector<std::string> tables;
  for (size_t i = 0; i < row.refs.size(); ++i) {
    tables.push_back(
        fmt::format("{}, {}",
                    row.records[i].substr(0, row.records[i].find('_')),
                    row.refs[i]));
  }
  return tables;
}

bool Counts(const PublishedRow& row) {
  return row.use == PublishedUse::kFit || row.use == PublishedUse::kCheck;
}

// A run's printed and predicted figure in one table.
struct Entry {
  const PublishedRun* run;
  double printed;
  double predicted;
};

// Pairs of different devices whose printed figures differ by more than 5 %.
void AddPairs(const std::string& table,
              const std::string& quantity,
              const std::vector<Entry>& entries,
              std::vector<PublishedRank>& ranks) {
  constexpr double kGap = 0.05;
  for (const Entry& first : entries) {
    for (const Entry& second : entries) {
      if (first.run->device == second.run->device ||
          second.printed <= first.printed * (1 + kGap)) {
        continue;
      }
      ranks.push_back({table,
                       quantity,
                       first.run->name,
                       second.run->name,
                       first.predicted < second.predicted});
    }
  }
}

}  // namespace

std::optional<PublishedError> ErrorOf(const Published& published,
                                      const PublishedRow& row,
                                      const PublishedPrediction& prediction) {
  PublishedError error;
  error.measure = MeasureOf(row, prediction);
  const PublishedValue& printed = row.value;
  if (printed.kind == PublishedValue::Kind::kOutcome) {
    if (!prediction.answer.fits) return std::nullopt;
    error.right = *prediction.answer.fits == (printed.text == "fits");
    return error;
  }
  if (!prediction.answer.value) return std::nullopt;
  const double value = *prediction.answer.value;
  const double low = prediction.answer.low.value_or(value);
  const double high = prediction.answer.high.value_or(value);
  if (error.measure == PublishedMeasure::kOutcome) {
    error.right = BatchIsRight(published, row, value);
    error.error = 100.0 * (value / printed.low - 1.0);
    return error;
  }
  if (prediction.answer.low) error.covered = WithinDigits(row, low, high);
  if (error.measure == PublishedMeasure::kExact) {
    error.right = WithinDigits(row, low, high);
    // Some figures are cut at their last digit instead of rounded.
    if (value > printed.low) {
      error.right = error.right || value < printed.low + 2 * printed.tolerance;
    }
  } else {
    error.right = WithinDigits(row, value, value);
  }
  const bool bound = error.measure == PublishedMeasure::kBound;
  if (bound && error.right) return error;
  // How far past a bound, or from the figure.
  const double against =
      bound && value > printed.high ? printed.high : printed.low;
  error.error = error.measure == PublishedMeasure::kPoints
                    ? 100.0 * (value - against)
                    : 100.0 * (value / against - 1.0);
  return error;
}

std::vector<PublishedRank> RankPublished(
    const Published& published,
    const std::vector<PublishedPrediction>& predictions) {
  std::map<std::string, double> times;  // predicted, by run
  for (size_t i = 0; i < published.rows.size(); ++i) {
    const auto& value = predictions[i].answer.value;
    if (published.rows[i].quantity == "run_time" && value) {
      times[published.rows[i].run] = *value;
    }
  }
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> tables;
  for (const PublishedRow& row : published.rows) {
    const bool time = row.quantity == "run_time";
    if ((!time && row.quantity != "cost") || !Counts(row)) continue;
    if (row.value.kind != PublishedValue::Kind::kNumber) continue;
    const PublishedRun& run = published.RunOf(row);
    const auto predicted = times.find(run.name);
    if (!run.device || predicted == times.end()) continue;
    if (!time && !run.price) continue;
    const double ours = time ? predicted->second
                             : predicted->second * run.price->base() *
                                   static_cast<double>(run.device_count);
    for (const std::string& table : TablesOf(row)) {
      tables[{table, row.quantity}].push_back({&run, row.value.low, ours});
    }
  }
  std::vector<PublishedRank> ranks;
  for (const auto& [key, entries] : tables) {
    AddPairs(key.first, key.second, entries, ranks);
  }
  return ranks;
}

std::vector<MeasuredAnswer> MeasuredRuns(
    const Published& published,
    const std::vector<size_t>& rows,
    const std::vector<PublishedPrediction>& predictions) {
  std::vector<MeasuredAnswer> runs;
  for (const size_t i : rows) {
    const PublishedRow& row = published.rows[i];
    const PublishedAnswer& answer = predictions[i].answer;
    const PublishedRun& run = published.RunOf(row);
    if (row.quantity != "run_time" || !Counts(row) || !run.device) continue;
    if (row.value.kind != PublishedValue::Kind::kNumber) continue;
    if (!answer.value || !answer.low || !answer.high) continue;
    const PublishedJob job = JobOf(published, run);
    for (const std::string& table : TablesOf(row)) {
      runs.push_back({fmt::format("{}: {} on {}",
                                  table,
                                  calibrate::Describe(job.scenario.workload),
                                  job.devices),
                      job.device->name,
                      model::Second(row.value.low),
                      {*answer.value, *answer.low, *answer.high}});
    }
  }
  return runs;
}

}  // namespace trainfare::scenarios
