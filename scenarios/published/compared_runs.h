#pragma once

// Runs of one table that trained one job on several devices: the order that
// they come in, and which of them a person would choose.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/import/published.h"
#include "scenarios/published/published_prediction.h"
#include "scenarios/validation/choice_validation.h"

namespace trainfare::scenarios {

// Two runs of one table on different devices whose figures differ by more
// than 5 %, and whether ours come in the same order.
struct PublishedRank {
  std::string table;
  std::string quantity;  // run_time, cost
  std::string first;     // run with the smaller printed figure
  std::string second;
  bool right = false;
  // The rows whose answers they are ordered by, by their place in the data.
  std::array<size_t, 2> rows = {};
};

// Pairs of which both figures and the answers that they are ordered by are
// among `asked`, places of rows in ascending order.
std::vector<PublishedRank> RankPublished(
    const calibrate::Published& published,
    const std::vector<size_t>& asked,
    const std::vector<PublishedPrediction>& predictions);

// Run times among `rows` with their intervals: a question is a job of one table
// on so many devices.
std::vector<MeasuredAnswer> MeasuredRuns(
    const calibrate::Published& published,
    const std::vector<size_t>& rows,
    const std::vector<PublishedPrediction>& predictions);

}  // namespace trainfare::scenarios
