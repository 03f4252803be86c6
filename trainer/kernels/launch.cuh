#pragma once

// A launch as a call, so that the kernels' source is plain C++ but for CUDA's
// qualifiers: tests/trainer/cuda_on_cpu.h gives those, and this, their meaning
// on a CPU.

#ifdef __CUDACC__

#include <cuda_runtime_api.h>

namespace trainfare::trainer {

// Returns what the launch itself came to; the kernel may still be running.
template <class... Parameters, class... Arguments>
cudaError_t LaunchKernel(void (*kernel)(Parameters...),
                         dim3 grid,
                         dim3 block,
                         cudaStream_t stream,
                         const Arguments&... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace trainfare::trainer

#endif
