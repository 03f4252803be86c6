#include "trainer/runtime/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

namespace trainfare::trainer {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<bool> nothing_to_lose{false};

constexpr std::array kSignals = {SIGINT, SIGTERM};

void WaitForSignals(const sigset_t& signals) {
  while (true) {
    int received = 0;
    if (::sigwait(&signals, &received) != 0) continue;
    if (nothing_to_lose.load() || stop_requested.exchange(true)) {
      ::_exit(kInterruptedExit);
    }
  }
}

}  // namespace

void WatchSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kSignals) {
    ::sigaddset(&signals, signal);
    // A shell starts what runs in its background with SIGINT ignored, and what
    // is ignored is never waited for.
    std::signal(signal, SIG_DFL);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(WaitForSignals, signals).detach();
  std::signal(SIGPIPE, SIG_IGN);
  // A file beyond ulimit -f: an error as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
}

bool StopRequested() { return stop_requested.load(); }

void ThrowIfStopRequested() {
  if (StopRequested()) throw Interrupted();
}

NothingToLose::NothingToLose() {
  nothing_to_lose.store(true);
  // A signal just before the store above only set the flag.
  if (stop_requested.load()) ::_exit(kInterruptedExit);
}
NothingToLose::~NothingToLose() { nothing_to_lose.store(false); }

}  // namespace trainfare::trainer
