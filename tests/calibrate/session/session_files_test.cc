// From end to end, with a trainer that only pretends.

#include "calibrate/session/session_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
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
  // What was set aside before stays there.
  std::ofstream(fake / "fits/here.partial.jsonl") << "runs of today\n";
  Calibrate(options, fresh_log);
  CHECK(LinesOf(fake / "fits/here.partial.jsonl.old") == 3);
  CHECK(LinesOf(fake / "fits/here.partial.jsonl.old.2") == 1);
}

// Records of the fits before are nobody's to lose, in place or beside it.
TEST_CASE("records take no earlier records' place") {
  const fs::path folder = fs::temp_directory_path() /
                          ("trainfare_keep_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const internal::SessionFiles files((folder / "fit.yaml").string());
  for (const bool in_place : {true, false}) {
    const std::string path =
        (folder / (in_place ? "fit.jsonl" : "fit.new.jsonl")).string();
    for (int lines = 1; lines <= 3; ++lines) {
      std::ofstream file(files.partial());
      for (int i = 0; i < lines; ++i) file << "a run\n";
      file.close();
      CHECK(files.Keep(in_place) == path);
    }
    CHECK(LinesOf(path) == 3);
    CHECK(LinesOf(path + ".old") == 1);
    CHECK(LinesOf(path + ".old.2") == 2);
  }
  fs::remove_all(folder);
}

TEST_CASE("a tail that cannot be cut leaves no file open") {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), {});
  };
  const fs::path folder = fs::temp_directory_path() /
                          ("trainfare_tail_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const internal::SessionFiles files((folder / "fit.yaml").string());
  REQUIRE(::mkfifo(files.partial().c_str(), 0600) == 0);
  const auto before = open_files();
  CHECK_FALSE(files.DropTail());
  CHECK(open_files() == before);
  fs::remove_all(folder);
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
