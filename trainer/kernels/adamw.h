#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "trainer/kernels/fused_adamw.h"

namespace trainfare::trainer {

// AdamW of narrow parameters in device memory: one launch for every 400.
cudaError_t LaunchAdamW(const AdamWTensor* tensors,
                        size_t count,
                        const AdamWScalars& scalars,
                        cudaStream_t stream);

}  // namespace trainfare::trainer
