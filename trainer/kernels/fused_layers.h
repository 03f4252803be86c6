#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/fused_kernels.h"

namespace trainfare::trainer {

// The loops of fused_kernels.h over device memory; types float, half, bfloat16.
cudaError_t LaunchForward(const BiasActivation& a, cudaStream_t stream);
cudaError_t LaunchBackward(const BiasActivation& a, cudaStream_t stream);
cudaError_t LaunchForward(const AddNorm& a, cudaStream_t stream);
cudaError_t LaunchBackward(const AddNorm& a, cudaStream_t stream);
cudaError_t LaunchForward(const SoftmaxDropout& a, cudaStream_t stream);
cudaError_t LaunchBackward(const SoftmaxDropout& a, cudaStream_t stream);

}  // namespace trainfare::trainer
