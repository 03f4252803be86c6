// From end to end, with a trainer that only pretends.

#include "calibrate/session/earlier_runs.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/command.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

TEST_CASE("towards another question what was measured for the first counts" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("towards");
  std::ostringstream log;
  const CalibrateResult first = Calibrate(TowardsStep(fake, 32), log);
  REQUIRE(first.fit.has_value());
  const Measurements before = ReadMeasurements(first.records_path);

  std::ostringstream second_log;
  CalibrateOptions options = TowardsStep(fake, 40);
  const CalibrateResult second = Calibrate(options, second_log);
  REQUIRE(second.fit.has_value());
  CHECK(second.kept.empty());
  CHECK(second_log.str().find("behind the fit that is there count, too") !=
        std::string::npos);
  // Its records are all that it was made of, and make it again.
  const Measurements after = ReadMeasurements(second.records_path);
  REQUIRE(after.runs.size() > before.runs.size());
  for (size_t i = 0; i < before.runs.size(); ++i) {
    CHECK(Describe(after.runs[i].workload) ==
          Describe(before.runs[i].workload));
  }
  CHECK(second.fit->range.max_sequence_length == 40);
  CHECK(second.fit->provenance.runs > first.fit->provenance.runs);
  CalibrateOptions again;
  again.from = {second.records_path};
  again.output = fake / "again.yaml";
  CHECK(Calibrate(again, log).fit->Values() == second.fit->Values());

  // On a machine that is half as fast by now they do not count.
  ::setenv("FAKE_SLOWNESS", "200", 1);
  std::ostringstream slow_log;
  const CalibrateResult slower = Calibrate(options, slow_log);
  CHECK(slow_log.str().find("this machine's speed changed since, by 100 %: "
                            "the ") != std::string::npos);
  CHECK(ReadMeasurements(slower.records_path).runs.size() < after.runs.size());

  // Nor where somebody starts afresh.
  options.fresh = true;
  std::ostringstream fresh_log;
  Calibrate(options, fresh_log);
  CHECK(fresh_log.str().find("behind the fit") == std::string::npos);
}

}  // namespace
}  // namespace trainfare::calibrate
