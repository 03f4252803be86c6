#include "scenarios/commands/calibration.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::scenarios {
namespace {

// What is said of rows that a fit of scatter 10 % has so many times as long as
// they are.
std::string MissedRows(const std::vector<double>& modelled_s) {
  calibrate::Fit fit = calibrate::PriorFit(
      hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb"));
  fit.residual_scatter = 0.1;
  for (size_t i = 0; i < modelled_s.size(); ++i) {
    calibrate::FittedRun run;
    run.label = "runs.csv:" + std::to_string(i + 2);
    run.place = calibrate::Place{};
    run.measured = model::Second(1.0);
    run.modelled = model::Second(modelled_s[i]);
    fit.runs.push_back(run);
  }
  calibrate::CalibrateResult result;
  result.fit = fit;
  result.fit_path = "fit.yaml";
  for (const Note& note : CalibrationReport(result, {}).warnings) {
    if (note.caution == Caution::kRowsMissed) return note.text;
  }
  return "";
}

TEST_CASE("rows that a fit misses grossly are named, three of them") {
  CHECK(MissedRows({1.0, 0.9, 1.3}).empty());
  CHECK(MissedRows({1.0, 0.5}) ==
        "1 run is missed by more than 3 standard deviations (-26 % to +35 "
        "%): runs.csv:3 by -50.0 %; is the row right, and of this device?");
  CHECK(MissedRows({2.0, 3.0, 0.9, 4.0, 1.5, 1.6}) ==
        "5 runs are missed by more than 3 standard deviations (-26 % to +35 "
        "%): runs.csv:5 by +300.0 %, runs.csv:3 by +200.0 %, runs.csv:2 by "
        "+100.0 %, and 2 more; are the rows right, and of this device?");
}

std::vector<std::string> WarningsOf(const calibrate::CalibrateResult& result) {
  std::vector<std::string> warnings;
  for (const Note& note : CalibrationReport(result, {}).warnings) {
    warnings.push_back(note.text);
  }
  return warnings;
}

TEST_CASE("a fit that misses its own runs, and rows far apart, are warned of") {
  calibrate::CalibrateResult result;
  result.fit = calibrate::PriorFit(
      hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb"));
  result.fit_path = "fit.yaml";
  result.fit->in_sample_error = 0.4;
  CHECK(WarningsOf(result).empty());
  result.fit->in_sample_error = 0.62;
  CHECK(WarningsOf(result) ==
        std::vector<std::string>{
            "the fit misses half of its own runs by more than 62 %: are their "
            "units, batches and stacks right?"});
  result.fit->in_sample_error = 0.0;
  for (const double seconds : {1.0, 12.0}) {
    calibrate::FittedRun run;
    run.label = "runs.csv:" + std::to_string(result.fit->runs.size() + 2);
    run.measured = run.modelled = model::Second(seconds);
    result.fit->runs.push_back(run);
  }
  CHECK(WarningsOf(result) ==
        std::vector<std::string>{
            "rows of one run, runs.csv:2 and runs.csv:3, are 12 times apart "
            "(1 s and 12 s): is the unit of one another?"});
  // Rows of one run in a table have the label of its first.
  result.fit->runs.back().label = "runs.csv:2";
  CHECK(WarningsOf(result).at(0).starts_with(
      "rows of one run, runs.csv:2, are 12 times apart"));
}

}  // namespace
}  // namespace trainfare::scenarios
