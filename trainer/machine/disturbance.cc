#include "trainer/machine/disturbance.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace trainfare::trainer {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

// Second field of each thread's schedstat: nanoseconds on the run queue.
// Threads that ended took theirs along; a trainer's threads stay.
std::optional<double> WaitedSeconds() {
  double waited_ns = 0;
  bool found = false;
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    double ran_ns = 0;
    double thread_waited_ns = 0;
    if (file >> ran_ns >> thread_waited_ns) {
      waited_ns += thread_waited_ns;
      found = found || ran_ns > 0;
    }
  }
  if (!found) return std::nullopt;
  return waited_ns * 1e-9;
}

}  // namespace

std::optional<double> HostLoad::waited_share(int threads) const {
  if (!waited_s || wall_s <= 0 || threads <= 0) return std::nullopt;
  return *waited_s / (wall_s * threads);
}

bool HostLoad::disturbed(int threads) const {
  if (const auto share = waited_share(threads)) {
    return *share > kDisturbedShare;
  }
  return static_cast<double>(involuntary_switches) >
         kDisturbedSwitches * wall_s * threads;
}

HostLoad HostLoadMeter::Now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  HostLoad load;
  load.wall_s = std::chrono::duration<double>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count();
  load.cpu_s = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  load.involuntary_switches = usage.ru_nivcsw;
  load.waited_s = WaitedSeconds();
  return load;
}

HostLoad HostLoadMeter::SinceStart() const {
  HostLoad load = Now();
  load.wall_s -= start_.wall_s;
  load.cpu_s -= start_.cpu_s;
  load.involuntary_switches -= start_.involuntary_switches;
  if (load.waited_s && start_.waited_s) {
    *load.waited_s -= *start_.waited_s;
  } else {
    load.waited_s.reset();
  }
  return load;
}

}  // namespace trainfare::trainer
