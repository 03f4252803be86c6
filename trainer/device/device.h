#pragma once

#include <string>
#include <vector>

#include "trainer/kernels/fused_adamw.h"
#include "trainer/kernels/fused_adan.h"
#include "trainer/kernels/fused_kernels.h"
#include "trainer/record/record.h"
#include "trainer/runtime/aten.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace trainfare::trainer {

// "cpu" or "cuda", of several GPUs the one of that number. Throws InputError
// where there is no such device: a run never falls back to another one.
at::Device OpenDevice(const std::string& name, int number = 0);

// What there is to compute on, a line of JSON each: the processor, then every
// GPU; where there is none, the line of the GPUs says why.
std::vector<std::string> DescribeDevices();

// A process group of NCCL on the GPU that OpenDevice opened, as a
// c10::intrusive_ptr's bare pointer, reference included.
c10d::Backend* OpenNccl(c10d::Store* store, int rank, int world_size);

DeviceDescription Describe(at::Device device);

// FusedAdan() and FusedAdamW() on the GPU that OpenDevice opened, on its
// current stream.
void FusedAdanOnGpu(const std::vector<AdanTensor>& tensors,
                    const AdanScalars& scalars);
void FusedAdamWOnGpu(const std::vector<AdamWTensor>& tensors,
                     const AdamWScalars& scalars);

// FusedForward() and FusedBackward() there.
void FusedForwardOnGpu(const BiasActivation& arguments);
void FusedBackwardOnGpu(const BiasActivation& arguments);
void FusedForwardOnGpu(const AddNorm& arguments);
void FusedBackwardOnGpu(const AddNorm& arguments);
void FusedForwardOnGpu(const SoftmaxDropout& arguments);
void FusedBackwardOnGpu(const SoftmaxDropout& arguments);

}  // namespace trainfare::trainer
