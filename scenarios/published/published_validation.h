#pragma once

// trainfare validate scenarios/published/: what the product answers for
// published runs, as shipped and left out, beside what was printed.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/published/published_prediction.h"
#include "scenarios/report/output.h"
#include "scenarios/validation/choice_validation.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// How a row is judged.
enum class PublishedMeasure {
  kPercent,  // of the figure
  kPoints,   // difference of two shares, in percentage points
  kExact,    // a check of the data: to the printed digits
  kOutcome,  // fits or not; a batch between the largest and the failing one
  kBound,    // of ranges and bounds: the two overlap
};

struct PublishedError {
  PublishedMeasure measure = PublishedMeasure::kPercent;
  double error = 0;             // signed, percent or points
  bool right = true;            // within what the figure is known to
  std::optional<bool> covered;  // by the 80 % interval, where there is one
};

// nullopt when the row has no answer.
std::optional<PublishedError> ErrorOf(const calibrate::Published& published,
                                      const calibrate::PublishedRow& row,
                                      const PublishedPrediction& prediction);

// Two runs of one table on different devices whose figures differ by more
// than 5 %, and whether ours come in the same order.
struct PublishedRank {
  std::string table;
  std::string quantity;  // run_time, cost
  std::string first;     // run with the smaller printed figure
  std::string second;
  bool right = false;
};
std::vector<PublishedRank> RankPublished(
    const calibrate::Published& published,
    const std::vector<PublishedPrediction>& predictions);

// Run times among `rows` with their intervals: a question is a job of one table
// on so many devices.
std::vector<MeasuredAnswer> MeasuredRuns(
    const calibrate::Published& published,
    const std::vector<size_t>& rows,
    const std::vector<PublishedPrediction>& predictions);

// Whether `files` are published figures: one folder, or *.yaml.
bool IsPublished(const std::vector<std::string>& files);

// Throws UsageError for a protocol that these data do not allow.
Report ValidatePublished(const ValidateOptions& options);

}  // namespace trainfare::scenarios
