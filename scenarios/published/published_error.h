#pragma once

// How a published row and an answer are held against each other.

#include <optional>
#include <string_view>

#include "calibrate/records/import/published.h"
#include "scenarios/published/published_prediction.h"

namespace trainfare::scenarios {

// How a row is judged.
enum class PublishedMeasure {
  kPercent,  // of the figure
  kPoints,   // difference of two shares, in percentage points
  kExact,    // a check of the data: to the printed digits
  kOutcome,  // fits or not; a batch between the largest and the failing one
  kBound,    // of ranges and bounds: the two overlap
};

std::string_view ToText(PublishedMeasure measure);

// How an answer to the row is judged, and would be where there is none.
PublishedMeasure MeasureOf(const calibrate::PublishedRow& row,
                           const PublishedPrediction& prediction);

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

}  // namespace trainfare::scenarios
