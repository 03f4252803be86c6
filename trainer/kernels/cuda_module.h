#pragma once

// The interface between the trainer and its CUDA module (cuda_module.cc).

#include <cstddef>

#include "trainer/kernels/fused_adamw.h"
#include "trainer/kernels/fused_adan.h"
#include "trainer/kernels/fused_kernels.h"

namespace trainfare::trainer {
// A function of fused_kernels.h, by the type of its argument.
enum class FusedOperation { kBiasActivation, kAddNorm, kSoftmaxDropout };
}  // namespace trainfare::trainer

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

extern "C" {
// Makes a GPU the current one. Returns 0 and writes its name and bus id, or
// returns 1 and writes what is wrong to `text`.
int trainfare_cuda_open(
    int device, char* text, size_t size, char* bus_id, size_t bus_id_size);

// FusedAdan() on the current GPU and stream; answers as above.
int trainfare_cuda_adan(const trainfare::trainer::AdanTensor* tensors,
                        size_t count,
                        const trainfare::trainer::AdanScalars* scalars,
                        char* text,
                        size_t size);

// FusedAdamW() likewise.
int trainfare_cuda_adamw(const trainfare::trainer::AdamWTensor* tensors,
                         size_t count,
                         const trainfare::trainer::AdamWScalars* scalars,
                         char* text,
                         size_t size);

// FusedForward() or FusedBackward() of the struct that `operation` names, on
// the current GPU and stream; answers as above.
int trainfare_cuda_fused(trainfare::trainer::FusedOperation operation,
                         bool backward,
                         const void* arguments,
                         char* text,
                         size_t size);

// A process group of NCCL, with one reference that is the caller's; or null,
// and what is wrong.
c10d::Backend* trainfare_cuda_nccl(
    c10d::Store* store, int rank, int world_size, char* text, size_t size);
}
