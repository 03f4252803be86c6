#pragma once

// Results as JSON, the same keys in every command. Internal to scenarios/:
// includes the JSON library, so for .cc files only.

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/answer_figures.h"
#include "scenarios/report/json.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/report.h"

namespace trainfare::scenarios {

// What figures of an answer rest on besides the command's own files.
struct Grounds {
  std::optional<uint64_t> seed;     // of its draws; none: it draws nothing
  std::vector<PriceSource> prices;  // of the clouds that it looked at
};
// The first keys of every result; `schema`: "trainfare.prediction/1".
Json ResultHead(std::string_view schema,
                const Origin& origin,
                const Grounds& grounds = {});
// Whether a text begins with the first two of them, in whichever layout.
bool IsAnswer(std::string_view text);
Json ToJson(const Scenario& scenario);
// All of a workload, as scenarios have it in answers.
Json ToJson(const model::Workload& workload);
// What a report's JSON is made by: `json` with the report's notes, and those of
// its notes and warnings that a reader can act on, each by its code. Any text,
// finite numbers only (InputError).
std::string AnswerText(Json json, const Report& report);

// The figures of a part, null where they are not known.
void AddFigures(FigurePart part, const Answered& answered, Json& json);
// All that an estimate says; only memory and the reason when it does not fit.
Json ToJson(const JobEstimate& job);
Json ToJson(const Tariff& tariff);
Json ToJson(const std::optional<Tariff>& tariff);

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace trainfare::scenarios
