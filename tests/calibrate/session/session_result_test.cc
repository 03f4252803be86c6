// From end to end, with a trainer that only pretends.

#include "calibrate/session/session_result.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/session/command.h"
#include "model/units.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

TEST_CASE("a good fit stays where a calibration is interrupted early" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  std::ostringstream log;
  CalibrateOptions options = fake.Options();
  const CalibrateResult good = Calibrate(options, log);
  const int64_t runs = good.fit->provenance.runs;
  REQUIRE(runs > 6);

  FakeTrainer::Mode("interrupt");
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(options, second_log);
  CHECK(second.interrupted);
  CHECK(second.fit_path.empty());
  CHECK(LoadFit(options.output).provenance.runs == runs);
  CHECK(second_log.str().find("the fit there is kept: ") != std::string::npos);
  CHECK(second.kept.find("the fit there is kept: ") != std::string::npos);
  // The records of the good one, too.
  CHECK(LinesOf(fake / "fits/here.jsonl") == runs);

  options.force = true;
  options.fresh = true;
  const CalibrateResult third = Calibrate(options, second_log);
  CHECK(third.interrupted);
  CHECK(LoadFit(options.output).provenance.runs == 3);
  CHECK(LoadFit(options.output + ".old").provenance.runs == runs);
}

TEST_CASE("interrupted before the first run, nothing is said to be kept" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("interrupt-first");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  CHECK(result.interrupted);
  CHECK_FALSE(result.fit.has_value());
  CHECK(result.records_path.empty());
  CHECK(log.str().ends_with("calibrate: interrupted before the first run\n"));
  CHECK(log.str().find("kept") == std::string::npos);
  CHECK(std::filesystem::is_empty(fake / "fits"));
}

TEST_CASE("a finished calibration leaves fit and records of the one before" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  // Both make the same runs on a machine of any speed: neither gets to the end
  // of its budget.
  CalibrateOptions options = fake.Options();
  options.budget = model::Second(600.0);
  options.target_interval = 0.2;
  std::ostringstream log;
  const CalibrateResult first = Calibrate(options, log);
  const CalibrateResult second = Calibrate(options, log);
  CHECK(log.str().find("the target interval is reached") != std::string::npos);
  CHECK(second.kept.empty());
  CHECK(second.fit_path == first.fit_path);
  CHECK(LoadFit(first.fit_path + ".old").provenance.runs ==
        first.fit->provenance.runs);
  CHECK(LinesOf(first.records_path + ".old") == first.fit->provenance.runs);
  CHECK(LinesOf(second.records_path) == second.fit->provenance.runs);
}

}  // namespace
}  // namespace trainfare::calibrate
