#pragma once

// Whether other programs took processor time from a run.

#include <cstdint>
#include <optional>

namespace trainfare::trainer {

// The load of this process, all threads, over one stretch of time.
struct HostLoad {
  double wall_s = 0;
  double cpu_s = 0;                  // user and system time
  int64_t involuntary_switches = 0;  // the kernel gave the processor away
  // Time that threads were ready to run and had to wait for a processor;
  // absent where the kernel does not say.
  std::optional<double> waited_s;

  // Waiting, as a share of what `threads` had: wall time each.
  std::optional<double> waited_share(int threads) const;
  // More than kDisturbedShare of waiting; without that figure more than
  // kDisturbedSwitches involuntary switches a second and thread.
  bool disturbed(int threads) const;
};

inline constexpr double kDisturbedShare = 0.02;
inline constexpr double kDisturbedSwitches = 50.0;

// Takes stock at its making and says what came since.
class HostLoadMeter {
 public:
  HostLoadMeter() : start_(Now()) {}
  HostLoad SinceStart() const;

 private:
  static HostLoad Now();
  HostLoad start_;
};

}  // namespace trainfare::trainer
