#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "trainer/kernels/fused_adan.h"

namespace trainfare::trainer {

// Adan over a list of tensors in device memory: one launch for every
// 400 of them, so one a step for BERT-base and BERT-large.
cudaError_t LaunchAdan(const AdanTensor* tensors,
                       size_t count,
                       const AdanScalars& scalars,
                       cudaStream_t stream);

}  // namespace trainfare::trainer
