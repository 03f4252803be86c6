#pragma once

// Ctrl-C and SIGTERM: finish what must not be cut, then exit 130.
//
// No handler ever runs on a thread that computes: kernels may run on stacks of
// their own, which the frame of a signal with its vector registers overflows.
// Both signals are blocked in every thread, and one thread waits for them.

#include <stdexcept>

namespace trainfare::trainer {

// Exit code of a run that a signal ended.
inline constexpr int kInterruptedExit = 130;

// From here on SIGINT and SIGTERM ask to stop; a second one exits at once.
// A closed reader of our output is an error instead of a signal. Called before
// any other thread starts: threads inherit what is blocked.
void WatchSignals();
bool StopRequested();

// Ends what can be left where it is, such as the making of a model or a step
// before its update.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};
void ThrowIfStopRequested();

// While one exists, one at a time, a signal may end the program on the spot: it
// waits for input, or times what is written later.
class NothingToLose {
 public:
  NothingToLose();
  ~NothingToLose();
  NothingToLose(const NothingToLose&) = delete;
  NothingToLose& operator=(const NothingToLose&) = delete;
};

}  // namespace trainfare::trainer
