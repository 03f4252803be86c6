#include "trainer/measure/timed_calls.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/device/device_clock.h"
#include "trainer/machine/disturbance.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(at::Device device) : clock_(device) {}

  // Seconds of `count` calls, one after another, from an idle device on.
  double Time(int64_t count, const std::function<void()>& call) {
    clock_.Wait();
    clock_.Clear();
    const size_t begin = clock_.Mark();
    for (int64_t i = 0; i < count; ++i) {
      ThrowIfStopRequested();
      call();
    }
    const size_t end = clock_.Mark();
    clock_.Wait();
    return clock_.SecondsBetween(begin, end);
  }

 private:
  DeviceClock clock_;
};

}  // namespace

TimedCalls TimeCalls(at::Device device,
                     const TimedCallsOptions& options,
                     const std::function<void()>& call) {
  TimedCalls calls;
  Stopwatch stopwatch(device);
  // The first call compiled its kernel; of the next three the fastest says how
  // long one takes.
  double once_s = stopwatch.Time(1, call);
  for (int i = 0; i < 2; ++i) {
    once_s = std::min(once_s, stopwatch.Time(1, call));
  }
  once_s = std::max(once_s, 1e-7);
  calls.iterations = static_cast<int64_t>(
      std::clamp(std::ceil(options.seconds_a_sample / once_s), 1.0, 1e5));
  stopwatch.Time(calls.iterations, call);
  const HostLoadMeter load;
  for (int i = 0; i < options.samples; ++i) {
    const double sample_s = stopwatch.Time(calls.iterations, call);
    calls.samples_s.push_back(sample_s / static_cast<double>(calls.iterations));
    calls.device_time_s += sample_s;
  }
  calls.load = load.SinceStart();
  if (!(calls.device_time_s > 0)) {
    throw std::runtime_error("the device did no work on the timed calls");
  }
  return calls;
}

}  // namespace trainfare::trainer
