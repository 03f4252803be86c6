#pragma once

// What our models say beside each published figure
// (scenarios/published/published.h), each run predicted from the others.
// docs/results/validation_published.md has the resulting table.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/published/published.h"

namespace trainfare::scenarios {

// What the models may have seen.
enum class PublishedProtocol {
  kLeaveOneOut,  // all runs but this one and those of its same_as
  kInSample,     // all runs
};

struct PublishedPrediction {
  // In base units as the row; a range where `high` is above `value`.
  std::optional<double> value;
  std::optional<double> high;
  std::optional<bool> fits;  // of an outcome
  std::string how;           // from what, in a few words
  std::string reason;        // why there is none
};

// One for every row of `published.rows`, in order.
std::vector<PublishedPrediction> PredictPublished(
    const Published& published,
    PublishedProtocol protocol = PublishedProtocol::kLeaveOneOut);

}  // namespace trainfare::scenarios
