// Everything of the trainer that needs CUDA libraries, as a module of its own
// that device.cc loads for `--device cuda`. So one build serves machines with
// and without a GPU driver, cuDNN or NCCL, and a run on the CPU neither waits
// for them nor needs them.

#include "trainer/kernels/cuda_module.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <exception>

#include "trainer/kernels/adamw.h"
#include "trainer/kernels/adan.h"
#include "trainer/kernels/fused_layers.h"

extern "C" int trainfare_cuda_open(
    int device, char* text, size_t size, char* bus_id, size_t bus_id_size) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    std::snprintf(text, size, "%s", cudaGetErrorString(error));
    return 1;
  }
  if (device >= count) {
    std::snprintf(text, size, "GPU %d of %d", device, count);
    return 1;
  }
  try {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    cudaDeviceProp properties{};
    cudaError_t failed = cudaGetDeviceProperties(&properties, device);
    if (failed == cudaSuccess) {
      failed =
          cudaDeviceGetPCIBusId(bus_id, static_cast<int>(bus_id_size), device);
    }
    std::snprintf(
        text,
        size,
        "%s",
        failed == cudaSuccess ? properties.name : cudaGetErrorString(failed));
    return failed == cudaSuccess ? 0 : 1;
  } catch (const std::exception& failure) {
    std::snprintf(text, size, "%s", failure.what());
    return 1;
  }
}

namespace {

// Calls `launch` with the current stream.
template <class Launch>
int OnCurrentStream(const Launch& launch, char* text, size_t size) {
  try {
    const cudaError_t error =
        launch(c10::cuda::getCurrentCUDAStream().stream());
    if (error == cudaSuccess) return 0;
    std::snprintf(text, size, "%s", cudaGetErrorString(error));
  } catch (const std::exception& failure) {
    std::snprintf(text, size, "%s", failure.what());
  }
  return 1;
}

}  // namespace

extern "C" int trainfare_cuda_adan(
    const trainfare::trainer::AdanTensor* tensors,
    size_t count,
    const trainfare::trainer::AdanScalars* scalars,
    char* text,
    size_t size) {
  return OnCurrentStream(
      [&](cudaStream_t stream) {
        return trainfare::trainer::LaunchAdan(tensors, count, *scalars, stream);
      },
      text,
      size);
}

extern "C" int trainfare_cuda_adamw(
    const trainfare::trainer::AdamWTensor* tensors,
    size_t count,
    const trainfare::trainer::AdamWScalars* scalars,
    char* text,
    size_t size) {
  return OnCurrentStream(
      [&](cudaStream_t stream) {
        return trainfare::trainer::LaunchAdamW(
            tensors, count, *scalars, stream);
      },
      text,
      size);
}

namespace {

template <class Arguments>
cudaError_t LaunchFused(bool backward, const void* given, cudaStream_t stream) {
  using trainfare::trainer::LaunchBackward;
  using trainfare::trainer::LaunchForward;
  const auto& arguments = *static_cast<const Arguments*>(given);
  return backward ? LaunchBackward(arguments, stream)
                  : LaunchForward(arguments, stream);
}

}  // namespace

extern "C" int trainfare_cuda_fused(
    trainfare::trainer::FusedOperation operation,
    bool backward,
    const void* arguments,
    char* text,
    size_t size) {
  using trainfare::trainer::AddNorm;
  using trainfare::trainer::BiasActivation;
  using trainfare::trainer::FusedOperation;
  using trainfare::trainer::SoftmaxDropout;
  return OnCurrentStream(
      [&](cudaStream_t stream) {
        switch (operation) {
          case FusedOperation::kBiasActivation:
            return LaunchFused<BiasActivation>(backward, arguments, stream);
          case FusedOperation::kAddNorm:
            return LaunchFused<AddNorm>(backward, arguments, stream);
          case FusedOperation::kSoftmaxDropout:
            return LaunchFused<SoftmaxDropout>(backward, arguments, stream);
        }
        return cudaErrorInvalidValue;
      },
      text,
      size);
}
