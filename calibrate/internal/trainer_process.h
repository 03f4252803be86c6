#pragma once

// The trainer as a child process: requests to its standard input, records from
// its standard output, one line each (docs/measurement.md).

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace trainfare::calibrate::internal {

// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the
// process, and SIGPIPE is ignored. One at a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  static bool Received();
  // Readable once a signal has come, for poll().
  static int descriptor();
};

class TrainerProcess {
 public:
  // Starts `program measure --plan - --out -` in a process group of its own,
  // so that Ctrl-C reaches it only through Stop(). Throws InputError.
  explicit TrainerProcess(const std::string& program);
  // Ends the child, at once if it must.
  ~TrainerProcess();
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  // Sends one request line.
  void Send(const std::string& line);
  // The next line of its answers. nullopt: a signal came (see SignalGuard), or
  // `limit` passed. Throws InputError when the trainer ended.
  std::optional<std::string> Receive(std::chrono::duration<double> limit);

  // Asks it to end after the step in progress and returns the line that it
  // still wrote, if any; ends it after `grace`.
  std::optional<std::string> Stop(std::chrono::duration<double> grace);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainfare::calibrate::internal
