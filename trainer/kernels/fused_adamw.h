#pragma once

// AdamW of narrow parameters in one pass over memory, for CPUs and
// (kernels/adamw.cu) GPUs. In fp32 LibTorch has one of its own.

#include <cstdint>
#include <vector>

#include "trainer/kernels/fused_kernels.h"

namespace trainfare::trainer {

// One parameter tensor with its state.
struct AdamWTensor {
  float* parameter;        // the fp32 master
  const void* gradient;    // narrow
  void* narrow_parameter;  // the master rounded
  float* first_moment;
  float* second_moment;
  int64_t size;
  float step_size;  // learning rate of this tensor / (1 - beta1^t)
  float shrinkage;  // 1 - learning rate * weight decay
};

// What all tensors of one step share.
struct AdamWScalars {
  float beta1;
  float beta2;
  float epsilon;
  float second_correction;  // 1 / sqrt(1 - beta2^t)
  ElementType type;         // of gradients and narrow parameters
  // Gradients are multiplied by what stands here; null: by 1.
  const float* gradient_factor;
};

// Elements that one thread (CPU) or one block (GPU) takes at a time.
inline constexpr int64_t kAdamWChunk = 16384;

// All tensors, on all threads.
void FusedAdamW(const std::vector<AdamWTensor>& tensors,
                const AdamWScalars& scalars);

}  // namespace trainfare::trainer
