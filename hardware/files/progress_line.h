#pragma once

// How far something is, on a line of a terminal: "3 of 28 fits, about 12 s
// left".

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "model/units.h"

namespace trainfare::hardware {

// Of a count, and how long it has taken so far.
struct ProgressSoFar {
  double done = 0;
  double count = 0;
  double before = 0;  // of `done`, what was there at the start
  model::Seconds<> elapsed;
};

// "3 of 28 fits, about 12 s left: note"; never more than there is.
std::string ProgressText(const ProgressSoFar& so_far,
                         const std::string& what,
                         const std::string& note);

// The line is drawn by a thread of its own from two seconds on, and erased
// before anything else is written and at the end. Every function may be called
// by any thread.
class ProgressLine {
 public:
  // Without a width nothing is ever written.
  ProgressLine(std::ostream& log, std::optional<size_t> width);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // A count begins, of `what` in the plural; another that goes on is over.
  void Begin(double count, const std::string& what, double done = 0);
  // So many more of it are done.
  void Add(double more = 1);
  // So many in all, and what is done next.
  void Set(double done, const std::string& note);
  void End();
  // `write` writes to the log where the line stood.
  void Beside(const std::function<void()>& write);

 private:
  void Run(const std::stop_token& stop);
  void Draw();  // with mutex_ held, as Erase()
  void Erase();

  std::ostream& log_;
  const std::optional<size_t> width_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool going_on_ = false;
  ProgressSoFar so_far_;
  std::string what_;
  std::string note_;
  std::chrono::steady_clock::time_point begin_;
  std::string drawn_;    // the line that stands there
  std::jthread thread_;  // the last: it ends before what it draws
};

}  // namespace trainfare::hardware
