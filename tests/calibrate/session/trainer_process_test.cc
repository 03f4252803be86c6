// The trainer as a child (calibrate/session/trainer_process.h).

#include "calibrate/session/trainer_process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "model/error.h"

namespace trainfare::calibrate::internal {
namespace {

using std::chrono::seconds;

TrainerCommand Shell(const char* script) {
  return {"/bin/sh", {"-c", script}, 1};
}

TEST_CASE("a trainer is asked and answers, one line each") {
  TrainerProcess process(Shell("read line; echo \"got $line\""));
  process.Send("a request");
  CHECK(process.Receive(seconds(10)) == "got a request");
  CHECK(!process.ReceiveUntilEnd(seconds(10)));
  CHECK(process.ended());
}

TEST_CASE("a program that cannot be started says why") {
  CHECK_THROWS_WITH_AS(
      TrainerProcess({"/nowhere/trainer", {}, 1}),
      "/nowhere/trainer: cannot be started: No such file or directory",
      model::InputError);
}

TEST_CASE("a trainer does not inherit what we do with signals") {
  const SignalGuard guard;
  // The signals of a shell that blocks and ignores none.
  TrainerProcess process(
      Shell("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\n'; echo"));
  const auto line = process.Receive(seconds(10));
  REQUIRE(line.has_value());
  CHECK(*line == "SigBlk:\t0000000000000000SigIgn:\t0000000000000000");
}

// The process id of a trainer whose parent writes it to `to` and waits.
[[noreturn]] void BeParentOfTrainer(int to) {
  TrainerProcess process(Shell("echo $$; exec sleep 120"));
  const std::string line = process.Receive(seconds(10)).value_or("0") + "\n";
  if (::write(to, line.data(), line.size()) < 0) std::_Exit(1);
  while (true) ::pause();
}

TEST_CASE("kill -9 of the parent ends the trainer, too") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  // Orphans become ours, so that their end is seen.
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) BeParentOfTrainer(ends[1]);
  ::close(ends[1]);
  std::array<char, 32> text{};
  REQUIRE(::read(ends[0], text.data(), text.size() - 1) > 0);
  ::close(ends[0]);
  const pid_t trainer = std::atoi(text.data());
  REQUIRE(trainer > 0);
  CHECK(::kill(trainer, 0) == 0);
  ::kill(parent, SIGKILL);
  int status = 0;
  CHECK(::waitpid(parent, &status, 0) == parent);
  // It is to be over within two seconds.
  pid_t gone = 0;
  for (int i = 0; i < 200 && gone == 0; ++i) {
    gone = ::waitpid(trainer, &status, WNOHANG);
    if (gone == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(gone == trainer);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  if (gone == 0) {
    ::kill(trainer, SIGKILL);
    ::waitpid(trainer, &status, 0);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace trainfare::calibrate::internal
