#pragma once

// All-reduces timed by themselves (docs/data_parallel.md): what latency and
// bandwidth between the ranks are fitted to.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/aten.h"
#include "trainer/communicator.h"

namespace trainfare::trainer {

struct CollectiveBenchOptions {
  // Of one rank's message, fp32 numbers: as gradient buckets are.
  std::vector<int64_t> bytes = {1 << 20, 2 << 20, 4 << 20, 8 << 20, 25 << 20};
  int64_t samples = 5;
  std::string out = "-";
};

// Two records a size, by itself and beside computation; on a GPU the first
// alone. Returns the exit code.
int RunCollectiveBench(const CollectiveBenchOptions& options,
                       at::Device device,
                       Communicator& ranks);

}  // namespace trainfare::trainer
