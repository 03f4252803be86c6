// NCCL, for the CUDA module: the one file that needs its header.

#include <cstdio>
#ifdef USE_C10D_NCCL
#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "trainer/kernels/cuda_module.h"

extern "C" c10d::Backend* trainfare_cuda_nccl(
    c10d::Store* store, int rank, int world_size, char* text, size_t size) {
#ifdef USE_C10D_NCCL
  try {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    // The trainer's own monitor (rank_monitor.h) ends lost runs.
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(
               c10::intrusive_ptr<c10d::Store>::reclaim_copy(store),
               rank,
               world_size,
               std::move(options))
        .release();
  } catch (const std::exception& failure) {
    std::snprintf(text, size, "%s", failure.what());
    return nullptr;
  }
#else
  static_cast<void>(store);
  std::snprintf(text,
                size,
                "this build is without it; rank %d of %d cannot start",
                rank,
                world_size);
  return nullptr;
#endif
}
