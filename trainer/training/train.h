#pragma once

// Training for real: examples in, a trained model and a measurement out.

#include "trainer/ranks/communicator.h"
#include "trainer/ranks/data_parallel.h"
#include "trainer/runtime/aten.h"
#include "trainer/training/options.h"

namespace trainfare::trainer {

// Returns the exit code. Progress goes to stderr, the result to stdout. Of
// several ranks each takes `batch` sequences a micro-batch; the first alone
// reports and saves.
int Train(const TrainOptions& options,
          at::Device device,
          Communicator* ranks = nullptr,
          const BucketOptions& buckets = {});

}  // namespace trainfare::trainer
