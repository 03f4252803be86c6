#include "scenarios/commands/nearest_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

#include "calibrate/fit/fit_file.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {
namespace {

TEST_CASE("of the nearest runs it is said whether their source states them") {
  calibrate::Fit fit =
      calibrate::LoadFit(TRAINFARE_ROOT "/calibrate/fits/a10g.yaml");
  const Scenario scenario = LoadScenario("emotion_bert_base");
  const auto stated = [&] {
    const auto table = NearestRunTable(fit, scenario.workload);
    REQUIRE(table.has_value());
    const auto column = std::find_if(
        table->columns.begin(), table->columns.end(), [](const Column& one) {
          return one.key == "stated";
        });
    REQUIRE(column != table->columns.end());
    const auto at = static_cast<size_t>(column - table->columns.begin());
    return table->rows.at(0).at(at).text;
  };
  CHECK(stated() == "in part");
  for (calibrate::FittedRun& run : fit.runs) run.assumed = false;
  CHECK(stated() == "yes");
}

}  // namespace
}  // namespace trainfare::scenarios
