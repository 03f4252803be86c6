#pragma once

// What a device does of some work: its kernels, as CUPTI reports them to
// LibTorch's profiler.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trainer/record/record.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// Nanoseconds that lie in at least one of the intervals (begin, end).
int64_t CoveredNanoseconds(std::vector<std::pair<int64_t, int64_t>> intervals);

// The activity of one of `calls` calls in a row, up to a few hundred. The
// profiler slows the host, not the kernels: how long a call takes is timed
// without it. Of a CPU the operators count. Throws std::runtime_error where the
// profiler saw nothing: a driver may keep CUPTI from others than root.
DeviceActivity ActivityOf(at::Device device,
                          int64_t calls,
                          const std::function<void()>& call);

}  // namespace trainfare::trainer
