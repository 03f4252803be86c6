#pragma once

#include <string>
#include <vector>

#include "trainer/aten.h"
#include "trainer/fused_adan.h"
#include "trainer/record.h"

namespace trainfare::trainer {

// "cpu" or "cuda". Throws InputError where there is no such device: a run never
// falls back to another one.
at::Device OpenDevice(const std::string& name);

DeviceDescription Describe(at::Device device);

// FusedAdan() on the GPU that OpenDevice opened, on its current stream.
void FusedAdanOnGpu(const std::vector<AdanTensor>& tensors,
                    const AdanScalars& scalars);

}  // namespace trainfare::trainer
