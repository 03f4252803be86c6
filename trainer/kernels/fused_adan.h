#pragma once

// Adan in one pass over memory, for CPUs and (kernels/adan.cu) GPUs.

#include <cstdint>
#include <vector>

#include "trainer/kernels/fused_kernels.h"

namespace trainfare::trainer {

// One parameter tensor with its state: n fp32 values each, but for the gradient
// of a narrow parameter and the parameter itself, whose master is updated.
struct AdanTensor {
  float* parameter;  // or its master
  const void* gradient;
  void* narrow_parameter;    // the master rounded; null: none
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
  // The type of gradients and narrow parameters; kFloat: no narrow parameters.
  ElementType type = ElementType::kFloat;
  // Narrow gradients are multiplied by what stands here; null: by 1.
  const float* gradient_factor = nullptr;
};

// Elements that one thread (CPU) or one block (GPU) takes at a time.
inline constexpr int64_t kAdanChunk = 16384;

// All tensors, on all threads.
void FusedAdan(const std::vector<AdanTensor>& tensors,
               const AdanScalars& scalars);

}  // namespace trainfare::trainer
