// Runs of our own, which lie beside the tests: whoever builds this has them.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "calibrate/records/statistics.h"
#include "scenarios/commands/validate.h"
#include "scenarios/report/json.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

Json ValidatedTransformers() {
  ValidateOptions options;
  options.files = {TRAINFARE_ROOT "/tests/measurements/h200_transformers.csv"};
  return Json::parse(Validate(options).json);
}

}  // namespace

// The aims of memory: 3 % in the median, 12 at worst, 97 of 100 verdicts right.
TEST_CASE("memory of Transformers' training on an H200 is within its aims") {
  const Json memory = ValidatedTransformers().at("memory");
  std::vector<double> errors;
  for (const Json& row : memory.at("rows")) {
    if (row.at("figure") != "allocated") continue;
    CAPTURE(row.at("label"));
    errors.push_back(std::abs(row.at("predicted_bytes").get<double>() /
                                  row.at("measured_bytes").get<double>() -
                              1.0));
    CHECK(errors.back() <= 0.12);
  }
  CHECK(errors.size() > 30);
  CHECK(calibrate::Median(errors) <= 0.03);
  const Json& verdicts = memory.at("verdicts");
  CHECK(verdicts.at("ran_out") == 1);
  CHECK(verdicts.at("right").get<double>() >=
        0.97 * (verdicts.at("fitted").get<double>() +
                verdicts.at("ran_out").get<double>()));
}

}  // namespace trainfare::scenarios
