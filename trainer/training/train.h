#pragma once

// Training for real: examples in, a trained model and a measurement out.

#include <cstdint>
#include <string>

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

// Loss, logits and the gradient of every parameter for one batch of all the
// examples, without dropout, as a safetensors file: what tests/trainer compares
// with the reference implementation.
struct GradientOptions {
  std::string model;
  std::string data;
  std::string out;
  int64_t length = 0;
  bool wide = false;  // all in fp64
  bool gradient_checkpointing = false;
};
void WriteGradients(const GradientOptions& options, at::Device device);

}  // namespace trainfare::trainer
