#include "scenarios/validation/error_summary.h"

#include <doctest/doctest.h>

#include <limits>

namespace trainfare::scenarios {

TEST_CASE("a limit is passed by what is no number") {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    const ErrorSummary summary = Summarise({{bad, false}, {1.0, true}});
    for (const char* limit : {"median>5%", "mape>5%", "bias<-5%", "max>=5"}) {
      CAPTURE(limit);
      Report report;
      CheckLimits({FailIfFromText(limit)}, summary, report);
      CHECK(report.exit_code == kLimitPassed);
    }
  }
}

TEST_CASE("a limit holds, and is passed, as it says") {
  const ErrorSummary summary = Summarise({{4.0, true}, {-6.0, false}});
  const auto code = [&](const char* limit) {
    Report report;
    CheckLimits({FailIfFromText(limit)}, summary, report);
    return report.exit_code;
  };
  CHECK(code("mape>5%") == kOk);
  CHECK(code("mape>=5%") == kLimitPassed);
  CHECK(code("coverage<60") == kLimitPassed);
  CHECK(code("max>6") == kOk);
}

}  // namespace trainfare::scenarios
