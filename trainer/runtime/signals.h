#pragma once

// Ctrl-C and SIGTERM: finish what must not be cut, then exit 130.

namespace trainfare::trainer {

// Exit code of a run that a signal ended.
inline constexpr int kInterruptedExit = 130;

// From here on SIGINT and SIGTERM ask to stop; a second one exits at once.
// A closed reader of our output is an error instead of a signal.
void InstallSignalHandlers();
bool StopRequested();

// While one exists the program waits for input and a signal may end it on the
// spot: nothing is half-written.
class WaitingForInput {
 public:
  WaitingForInput();
  ~WaitingForInput();
  WaitingForInput(const WaitingForInput&) = delete;
  WaitingForInput& operator=(const WaitingForInput&) = delete;
};

}  // namespace trainfare::trainer
