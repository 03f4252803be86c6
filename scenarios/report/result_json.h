#pragma once

// Results as JSON, the same keys in every command. Internal to scenarios/:
// includes the JSON library, so for .cc files only.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

using Json = nlohmann::ordered_json;

// The first keys of every result.
Json ResultHead(std::string_view schema);
Json ToJson(const Scenario& scenario);
// What a report's JSON is made by: any text, finite numbers only (InputError).
std::string JsonText(const Json& json);

// All that an estimate says; only memory and the reason when it does not fit.
Json ToJson(const JobEstimate& job);
Json ToJson(const Tariff& tariff);
Json ToJson(const std::optional<Tariff>& tariff);

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace trainfare::scenarios
