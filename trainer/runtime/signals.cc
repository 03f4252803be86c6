#include "trainer/runtime/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace trainfare::trainer {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<bool> waiting{false};

extern "C" void OnSignal(int) {
  if (waiting.load() || stop_requested.exchange(true)) {
    ::_exit(kInterruptedExit);
  }
}

}  // namespace

void InstallSignalHandlers() {
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool StopRequested() { return stop_requested.load(); }

WaitingForInput::WaitingForInput() {
  waiting.store(true);
  // A signal just before the store above only set the flag.
  if (stop_requested.load()) ::_exit(kInterruptedExit);
}
WaitingForInput::~WaitingForInput() { waiting.store(false); }

}  // namespace trainfare::trainer
