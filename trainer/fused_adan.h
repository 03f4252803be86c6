#pragma once

// Adan in one pass over memory, for CPUs and (kernels/adan.cu) GPUs.

#include <cstdint>
#include <vector>

namespace trainfare::trainer {

// One parameter tensor with its state: n fp32 values each.
struct AdanTensor {
  float* parameter;
  const float* gradient;
  float* first_moment;       // m
  float* difference_moment;  // v
  float* second_moment;      // n
  float* previous_gradient;
  int64_t size;
  float rate;       // learning rate of this tensor
  float shrinkage;  // 1 / (1 + rate * weight decay)
};

// What all tensors of one step share; the betas are the weights of the past.
struct AdanScalars {
  float beta1;
  float beta2;
  float beta3;
  float epsilon;
  float first_correction;       // 1 / (1 - beta1^t)
  float difference_correction;  // beta2 / (1 - beta2^t)
  float second_correction;      // 1 / sqrt(1 - beta3^t)
  bool first_step;              // there is no previous gradient yet
};

// Elements that one thread (CPU) or one block (GPU) takes at a time.
inline constexpr int64_t kAdanChunk = 16384;

// Updates elements [first, last) of one tensor.
void AdanRange(const AdanTensor& tensor,
               const AdanScalars& scalars,
               int64_t first,
               int64_t last);

// All tensors, on all threads.
void FusedAdan(const std::vector<AdanTensor>& tensors,
               const AdanScalars& scalars);

}  // namespace trainfare::trainer
