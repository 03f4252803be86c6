#include "hardware/files/progress_line.h"

#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <thread>
#include <vector>

namespace trainfare::hardware {
namespace {

std::string After(double seconds, double done, double count, double before) {
  return ProgressText(
      {done, count, before, model::Second(seconds)}, "fits", "");
}

}  // namespace

TEST_CASE("progress says what is done and what is left at that pace") {
  CHECK(After(3, 0, 28, 0) == "0 of 28 fits");
  // 4 s each, 25 are left.
  CHECK(After(12, 3, 28, 0) == "3 of 28 fits, about 1 min 40 s left");
  CHECK(After(12, 24, 28, 0) == "24 of 28 fits, about 2 s left");
  // 20 of them were there before: 2 s each.
  CHECK(After(8, 24, 28, 20) == "24 of 28 fits, about 8 s left");
  CHECK(After(9, 28, 28, 0) == "28 of 28 fits, finishing");
  CHECK(After(9, 31, 28, 0) == "28 of 28 fits, finishing");
  CHECK(ProgressText({4, 20, 0, model::Second(4.0)}, "s of runs", "run 3") ==
        "4 of 20 s of runs, about 16 s left: run 3");
}

TEST_CASE("a line is drawn after two seconds, by any thread, and erased") {
  std::ostringstream log;
  {
    ProgressLine line(log, 25);
    line.Begin(9000, "fits");
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) line.Add();
      });
    }
    threads.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    line.Beside([&] { CHECK(log.str().empty()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    line.Beside([&] { log << "a note\n"; });
  }
  const std::string text = log.str();
  // One column less than there are, or the terminal begins another line.
  CHECK(text.starts_with("\r8000 of 9000 fits, about"));
  CHECK(text.find("\r" + std::string(24, ' ') + "\ra note\n") !=
        std::string::npos);
}

TEST_CASE("where nobody looks nothing is written") {
  std::ostringstream log;
  {
    ProgressLine line(log, std::nullopt);
    line.Begin(2, "fits");
    line.Add();
    std::this_thread::sleep_for(std::chrono::milliseconds(2300));
  }
  CHECK(log.str().empty());
}

}  // namespace trainfare::hardware
