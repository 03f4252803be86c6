#pragma once

// A scenario that is asked about, and who wins.

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "scenarios/commands/recommend.h"
#include "scenarios/report/json.h"

namespace trainfare::scenarios {

inline RecommendOptions For(std::string_view scenario) {
  RecommendOptions options;
  options.scenario = scenario;
  return options;
}

// Checks that message, table and JSON name the same winner; returns it.
inline Json Winner(const Report& report) {
  const Json json = Json::parse(report.json);
  REQUIRE(json.at("chosen").is_object());
  const std::string name = json.at("chosen").at("instance");
  CHECK(report.headline.front().find(name) != std::string::npos);
  const Table& table = report.tables.front();
  REQUIRE(table.marked.has_value());
  CHECK(table.rows[*table.marked][1].text.ends_with(name));
  Json winner;
  int chosen = 0;
  for (const Json& candidate : json.at("candidates")) {
    if (!candidate.at("chosen").get<bool>()) continue;
    ++chosen;
    winner = candidate;
  }
  CHECK(chosen == 1);
  CHECK(winner.at("instance") == name);
  CHECK(winner.at("devices") == json.at("chosen").at("devices"));
  return winner;
}

}  // namespace trainfare::scenarios
