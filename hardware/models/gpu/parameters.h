#pragma once

// The free parameters of the model of GPUs.

#include <array>
#include <cstddef>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/models/kind.h"

namespace trainfare::hardware::models {

// Its free parameters. What is believed of each: hardware/kinds/gpu.yaml.
enum GpuParameter : std::size_t {
  kGpuGemmEfficiencyFp32,
  kGpuGemmEfficiencyTf32,
  kGpuGemmEfficiencyHalf,
  kGpuBatchedGemmRatio,
  kGpuCacheBandwidthRatio,
  kGpuVectorEfficiency,
  kGpuBandwidthEfficiency,
  kGpuMemoryLatency,
  kGpuKernelOverhead,
  kGpuLaunchCost,
  kGpuLibraryLaunchShare,
  kGpuCompiledLaunchShare,
  kGpuTensorOverhead,
  kGpuCompiledEfficiency,
  kGpuChunkGemmRatio,
  kGpuParameterCount,
};

inline constexpr std::array<std::string_view, kGpuParameterCount>
    kGpuParameters = {"gemm_efficiency_fp32",
                      "gemm_efficiency_tf32",
                      "gemm_efficiency_half",
                      "batched_gemm_ratio",
                      "cache_bandwidth_ratio",
                      "vector_efficiency",
                      "bandwidth_efficiency",
                      "memory_latency",
                      "kernel_overhead",
                      "launch_cost",
                      "library_launch_share",
                      "compiled_launch_share",
                      "tensor_overhead",
                      "compiled_efficiency",
                      "chunk_gemm_ratio"};

// What is believed of a GPU's before any run.
inline double UsualOf(GpuParameter parameter) {
  return ParametersOf(DeviceKind::kGpu)[parameter].prior;
}

}  // namespace trainfare::hardware::models
