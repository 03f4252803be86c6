// From end to end, with a trainer that only pretends.

#include "calibrate/session/session_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "calibrate/session/command.h"
#include "model/error.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

TEST_CASE("--fresh forgets, and sets aside what was there" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("interrupt");
  std::ostringstream log;
  Calibrate(fake.Options(), log);
  FakeTrainer::Mode("");
  CalibrateOptions options = fake.Options();
  options.fresh = true;
  std::ostringstream fresh_log;
  Calibrate(options, fresh_log);
  CHECK(fresh_log.str().find("going on from") == std::string::npos);
  CHECK(LinesOf(fake / "fits/here.partial.jsonl.old") == 3);
}

// What is cut off of a last line is cut from a file of ours alone.
TEST_CASE("a link in the place of the partial file leaves its target whole" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("");
  const std::string victim = fake / "victim";
  std::ofstream(victim) << "no newline";
  fs::create_directories(fake / "fits");
  fs::create_symlink(victim, fake / "fits/here.partial.jsonl");
  std::ostringstream log;
  CHECK_THROWS_AS(Calibrate(fake.Options(), log), InputError);
  CHECK(fs::file_size(victim) == 10);
}

}  // namespace
}  // namespace trainfare::calibrate
