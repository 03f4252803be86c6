#pragma once

// The trainer as a child process: requests to its standard input, records from
// its standard output, one line each (docs/guide/measurements.md).

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// What to start: of several ranks each is a process, told its place as torchrun
// tells it, on a port of this host; rank 0 gets the requests and answers.
struct TrainerCommand {
  std::string program;
  std::vector<std::string> arguments;
  int64_t ranks = 1;
};

class TrainerProcess {
 public:
  // In process groups of their own, so that Ctrl-C reaches them only through
  // Stop(). They end at once when this process ends, however it ends: to be
  // called by the main thread. Throws InputError.
  explicit TrainerProcess(const TrainerCommand& command);
  // Ends the children, at once if it must.
  ~TrainerProcess();
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  // Sends one request line.
  void Send(const std::string& line);
  // The next line of its answers. nullopt: a signal came (see SignalGuard), or
  // `limit` passed. Throws InputError when the trainer ended.
  std::optional<std::string> Receive(std::chrono::duration<double> limit);
  // The same of a trainer that ends by itself when it has said all: then
  // nullopt, and ended().
  std::optional<std::string> ReceiveUntilEnd(
      std::chrono::duration<double> limit);
  bool ended() const;

  // Asks it to end after the step in progress and returns the line that it
  // still wrote, if any; ends it after `grace`.
  std::optional<std::string> Stop(std::chrono::duration<double> grace);
  // What it wrote besides that line, one line a call.
  std::optional<std::string> TakeReceived();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainfare::calibrate::internal
