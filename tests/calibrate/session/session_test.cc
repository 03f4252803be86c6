// From end to end, with a trainer that only pretends.

#include "calibrate/session/session.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/command.h"
#include "calibrate/session/output_lock.h"
#include "model/error.h"
#include "model/units.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

TEST_CASE("interrupted, it keeps what is finished and goes on from there" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("interrupt");
  std::ostringstream log;
  const CalibrateResult first = Calibrate(fake.Options(), log);
  CHECK(first.interrupted);
  CHECK(first.records_path == fake / "fits/here.partial.jsonl");
  // The run in progress was reported on the way out.
  CHECK(LinesOf(first.records_path) == 3);
  CHECK(log.str().find("calibrate: interrupted; 3 finished runs kept in " +
                       first.records_path +
                       ", the next calibrate goes on from there") !=
        std::string::npos);
  const std::string kept = [&] {
    std::ifstream file(first.records_path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  // As if the machine had gone down while a line was written.
  std::ofstream(first.records_path, std::ios::app) << kept.substr(0, 50);

  FakeTrainer::Mode("");
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(fake.Options(), second_log);
  CHECK(!second.interrupted);
  CHECK(second_log.str().find("dropped the last line, it was cut off") !=
        std::string::npos);
  CHECK(second_log.str().find("calibrate: going on from 3 finished runs") !=
        std::string::npos);
  const Measurements all = ReadMeasurements(second.records_path);
  CHECK(all.runs.size() > 3);
  std::ifstream file(second.records_path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  CHECK(text.substr(0, kept.size()) == kept);
  CHECK(second.fit->provenance.runs == static_cast<int64_t>(all.runs.size()));
}

TEST_CASE("what changed while it was interrupted is seen" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("interrupt");
  CalibrateOptions options = fake.Options();
  // Steps are long enough to tell.
  ::setenv("FAKE_SLOWNESS", "100", 1);
  std::ostringstream log;
  CHECK(Calibrate(options, log).interrupted);
  CHECK(log.str().find("speed changed") == std::string::npos);
  FakeTrainer::Mode("");
  ::setenv("FAKE_SLOWNESS", "200", 1);
  options.budget = model::Second(60.0);
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(options, second_log);
  CHECK(second_log.str().find("this machine's speed changed meanwhile: "
                              "bert-tiny fp32, batch ") != std::string::npos);
  // The first run once more.
  const Measurements all = ReadMeasurements(second.records_path);
  REQUIRE(all.runs.size() > 3);
  CHECK(Describe(all.runs[3].workload) == Describe(all.runs[0].workload));
}

TEST_CASE("two calibrations of one output: the second says so and ends" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  const CalibrateOptions options = fake.Options();
  fs::create_directories(fs::path(options.output).parent_path());
  std::ostringstream log;
  {
    const internal::OutputLock other(options.output);
    CHECK_THROWS_WITH_AS(
        Calibrate(options, log),
        (options.output + ": another calibrate is writing it; wait for its "
                          "end, or give this one an --output of its own")
            .c_str(),
        InputError);
    CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
  }
  CHECK(!fs::exists(options.output + ".lock"));
  CHECK_NOTHROW(Calibrate(options, log));
  CHECK(!fs::exists(options.output + ".lock"));
}

TEST_CASE("a fit's name says that it is one, before anything is run" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  CalibrateOptions options = fake.Options();
  std::ostringstream log;
  const std::string yaml = options.output;
  // Its records would have the names of those of the fit in .yaml.
  options.output = fs::path(yaml).replace_extension(".yml").string();
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      (options.output + ": cannot be written: expected a name in .yaml, by "
                        "which fits are found")
          .c_str(),
      InputError);
  fs::create_symlink("elsewhere.yaml", yaml);
  options.output = yaml;
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      (yaml + ": cannot be written: expected a regular file or none, "
              "got a link; name its target")
          .c_str(),
      InputError);
  CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
}

}  // namespace
}  // namespace trainfare::calibrate
