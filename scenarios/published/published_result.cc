#include "scenarios/published/published_result.h"

#include <algorithm>

namespace trainfare::scenarios {

JudgedAnswers AnswersOf(const calibrate::Published& published,
                        const std::vector<size_t>& asked,
                        PublishedProtocol protocol) {
  JudgedAnswers answers;
  answers.protocol = protocol;
  answers.predictions = PredictPublished(published, protocol);
  const auto& rows = answers.predictions.rows;
  for (size_t i = 0; i < published.rows.size(); ++i) {
    answers.errors.push_back(ErrorOf(published, published.rows[i], rows[i]));
  }
  answers.ranks = RankPublished(published, asked, rows);
  return answers;
}

bool IsInferred(const calibrate::PublishedRun& run) {
  return std::any_of(run.assumed.begin(),
                     run.assumed.end(),
                     [](const auto& entry) { return entry.first != "price"; });
}

std::string_view ToText(PublishedProtocol protocol) {
  return protocol == PublishedProtocol::kLeaveOneOut ? "leave-one-out"
                                                     : "as-shipped";
}

}  // namespace trainfare::scenarios
