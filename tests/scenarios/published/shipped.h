#pragma once

// The published figures that ship, and what is answered to them without a fit
// of whoever runs the tests.

#include <nlohmann/json.hpp>

#include "calibrate/records/import/published_reader.h"
#include "scenarios/published/published_prediction.h"
#include "scenarios/published/published_validation.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {

inline constexpr const char* kPublishedFolder =
    TRAINFARE_ROOT "/scenarios/published";

inline const calibrate::Published& AllPublished() {
  static const calibrate::Published published =
      calibrate::LoadPublished(kPublishedFolder);
  return published;
}

inline const PublishedPredictions& PublishedPredictionsBy(
    PublishedProtocol protocol) {
  static const FitFolder hermetic;
  static const PublishedPredictions shipped =
      PredictPublished(AllPublished(), PublishedProtocol::kAsShipped);
  static const PublishedPredictions left_out =
      PredictPublished(AllPublished(), PublishedProtocol::kLeaveOneOut);
  return protocol == PublishedProtocol::kAsShipped ? shipped : left_out;
}

// The answer of `validate scenarios/published/`.
inline const nlohmann::json& PublishedAnswerJson() {
  static const nlohmann::json result = [] {
    const FitFolder hermetic;
    ValidateOptions options;
    options.files = {kPublishedFolder};
    return nlohmann::json::parse(ValidatePublished(options).json);
  }();
  return result;
}

}  // namespace trainfare::scenarios
