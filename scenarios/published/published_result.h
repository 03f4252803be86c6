#pragma once

// What a validation of published figures is reported from: the answers to its
// rows under each protocol, judged.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/records/import/published.h"
#include "scenarios/published/compared_runs.h"
#include "scenarios/published/published_error.h"
#include "scenarios/published/published_prediction.h"

namespace trainfare::scenarios {

// A protocol's answers to all rows, judged.
struct JudgedAnswers {
  PublishedProtocol protocol = PublishedProtocol::kAsShipped;
  PublishedPredictions predictions;
  std::vector<std::optional<PublishedError>> errors;
  std::vector<PublishedRank> ranks;
};

// All that the report is made of.
struct PublishedResult {
  const calibrate::Published& published;
  std::vector<size_t> rows;            // that were asked for
  std::vector<JudgedAnswers> answers;  // a protocol each
};

// `asked`: places of the rows that are reported, in ascending order.
JudgedAnswers AnswersOf(const calibrate::Published& published,
                        const std::vector<size_t>& asked,
                        PublishedProtocol protocol);

// Whether something that moves a run's answer is stated nowhere: its price and
// the gap of a recursion over printed layers do not.
bool IsInferred(const calibrate::PublishedRun& run);

std::string_view ToText(PublishedProtocol protocol);

}  // namespace trainfare::scenarios
