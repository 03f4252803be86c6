#include "calibrate/fit/gross_misses.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

FittedRun RunThatIs(const std::string& label, double modelled_s) {
  FittedRun run;
  run.label = label;
  run.place = Place{};
  run.measured = model::Second(1.0);
  run.modelled = model::Second(modelled_s);
  return run;
}

// Residuals log 1.05, log 0.5, log 1.4, log 1.33 = 0.049, -0.69, 0.336, 0.285;
// 3 s = 0.3.
TEST_CASE("runs past three standard deviations, the worst first") {
  Fit fit;
  fit.residual_scatter = 0.1;
  fit.runs = {RunThatIs("a.csv:2", 1.05),
              RunThatIs("a.csv:3", 1.4),
              RunThatIs("a.csv:4", 0.5),
              RunThatIs("a.csv:5", 1.33)};
  const std::vector<GrossMiss> misses = GrossMisses(fit);
  REQUIRE(misses.size() == 2);
  CHECK(misses[0].run == &fit.runs[2]);
  CHECK(misses[0].error == Near(-0.5, 1e-5));
  CHECK(misses[1].run == &fit.runs[1]);
  CHECK(misses[1].error == Near(0.4, 1e-5));
}

TEST_CASE("runs of one workload that are ten times apart") {
  const auto measured = [](const std::string& label,
                           const std::string& workload,
                           double seconds) {
    FittedRun run = RunThatIs(label, 1.0);
    run.workload = workload;
    run.measured = model::Second(seconds);
    return run;
  };
  Fit fit;
  fit.runs = {measured("a.csv:2", "x", 1.0),
              measured("a.csv:3", "x", 0.1),
              measured("a.csv:4", "x", 0.5),
              measured("a.csv:5", "y", 9.9),
              measured("a.csv:6", "y", 1.0)};
  const std::vector<FarApart> apart = RunsFarApart(fit);
  REQUIRE(apart.size() == 1);
  CHECK(apart[0].least->label == "a.csv:3");
  CHECK(apart[0].most->label == "a.csv:2");
  // Over other devices it is another run.
  fit.runs[1].devices = 8;
  CHECK(RunsFarApart(fit).empty());
}

TEST_CASE("no part of a step is one, and none of a fit that was added to") {
  Fit fit;
  fit.residual_scatter = 0.1;
  FittedRun forward = RunThatIs("a", 9.0);
  forward.quantity = Quantity::kForward;
  fit.runs = {RunThatIs("c", 1.0), forward};
  CHECK(GrossMisses(fit).empty());
  fit.runs.push_back(RunThatIs("d", 9.0));
  CHECK(GrossMisses(fit).size() == 1);
  FittedRun later = RunThatIs("e", 1.0);
  later.added = true;
  fit.runs.push_back(later);
  CHECK(GrossMisses(fit).empty());
}

}  // namespace
}  // namespace trainfare::calibrate
