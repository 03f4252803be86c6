#pragma once

// One call by itself, over and over, on the clock of the device.

#include <functional>

#include "trainer/record/record.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct TimedCallsOptions {
  int samples = 5;
  // Each sample repeats the call for at least so long.
  double seconds_a_sample = 0.02;
};

// Calls once to learn what it takes, then for every sample from an idle device
// on. Throws std::runtime_error where the device did no work, and Interrupted
// between two calls.
TimedCalls TimeCalls(at::Device device,
                     const TimedCallsOptions& options,
                     const std::function<void()>& call);

}  // namespace trainfare::trainer
