#include "scenarios/published/compared_runs.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "calibrate/records/observation.h"
#include "scenarios/published/published_job.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using calibrate::PublishedUse;
using calibrate::PublishedValue;

// The table that a row stands in: its number and its document.
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
  size_t row;  // whose answer it is
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
                       first.predicted < second.predicted,
                       {first.row, second.row}});
    }
  }
}

}  // namespace

std::vector<PublishedRank> RankPublished(
    const Published& published,
    const std::vector<size_t>& asked,
    const std::vector<PublishedPrediction>& predictions) {
  std::map<std::string, size_t> times;  // rows with a predicted one, by run
  for (const size_t i : asked) {
    if (published.rows[i].quantity == "run_time" &&
        predictions[i].answer.value) {
      times[published.rows[i].run] = i;
    }
  }
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> tables;
  for (const size_t i : asked) {
    const PublishedRow& row = published.rows[i];
    const bool time = row.quantity == "run_time";
    if ((!time && row.quantity != "cost") || !Counts(row)) continue;
    if (row.value.kind != PublishedValue::Kind::kNumber) continue;
    const PublishedRun& run = published.RunOf(row);
    const auto predicted = times.find(run.name);
    if (!run.device || predicted == times.end()) continue;
    if (!time && !run.price) continue;
    const double seconds = *predictions[predicted->second].answer.value;
    const double ours = time ? seconds
                             : seconds * run.price->base() *
                                   static_cast<double>(run.device_count);
    for (const std::string& table : TablesOf(row)) {
      tables[{table, row.quantity}].push_back(
          {&run, row.value.low, ours, predicted->second});
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
