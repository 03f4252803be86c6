#pragma once

// What the comparison with the reference implementation reads.

#include <cstdint>
#include <string>

#include "model/workload.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// Loss, logits and the gradient of every parameter that trains for one batch of
// all the examples, without dropout, as a safetensors file: what tests/trainer
// compares with the reference implementation.
struct GradientOptions {
  std::string model;
  std::string data;
  std::string out;
  int64_t length = 0;
  bool wide = false;  // all in fp64
  bool gradient_checkpointing = false;
  model::Trainable trainable;
};
void WriteGradients(const GradientOptions& options, at::Device device);

}  // namespace trainfare::trainer
