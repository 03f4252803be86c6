#pragma once

// The bandwidth that a copy reaches, beside which kernels that only stream
// memory are judged.

#include <cstdint>
#include <string>

#include "trainer/measure/timed_calls.h"
#include "trainer/record/record.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct CopyBenchOptions {
  // Far beyond every cache.
  int64_t bytes = int64_t{1} << 30;
  TimedCallsOptions calls = {.samples = 10, .seconds_a_sample = 0.05};
  std::string out = "-";
};

CopyRecord BenchCopy(const CopyBenchOptions& options, at::Device device);

// One record. Returns the exit code.
int RunCopyBench(const CopyBenchOptions& options, at::Device device);

}  // namespace trainfare::trainer
