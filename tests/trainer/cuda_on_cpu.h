#pragma once

// CUDA's qualifiers, indices, barriers and shuffles on a CPU, so that the
// kernels' source can be run where there is no GPU: include this, then the
// kernels. Every thread of a block is a context of its own that runs until it
// waits for others; blocks follow each other. Pointers are the host's.
//
// What it finds: wrong arithmetic, indices and masks; threads that don't come
// to a barrier or shuffle; and, since results must not depend on the order in
// which threads run, missing barriers. Not: time, memory coalescing, or what a
// compiler makes of it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#undef __global__
#define __global__
#undef __device__
#define __device__
#undef __shared__
#define __shared__ static  // blocks follow each other
#undef __grid_constant__
#define __grid_constant__
#undef __launch_bounds__
#define __launch_bounds__(...)

// As in CUDA; set for whichever thread runs.
inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 blockDim;
inline dim3 gridDim;

namespace trainfare::trainer::cuda_on_cpu {

enum class Order { kUp, kDown, kInterleaved };
// In which threads that may run are run.
inline Order order = Order::kUp;

// The threads of a block.
class Block {
 public:
  Block(unsigned threads, std::function<void()> kernel)
      : kernel_(std::move(kernel)), threads_(threads) {
    while (stacks_.size() < threads)
      stacks_.emplace_back(new std::byte[kStack]);
  }

  void Run() {
    running = this;
    for (size_t i = 0; i < threads_.size(); ++i) Prepare(i);
    while (RunWarps()) EndBarrier();
    running = nullptr;
  }

  void Barrier() { Wait(State::kAtBarrier); }
  float ShuffleXor(unsigned lanes, float value, int with) {
    if (lanes != 0xffffffffU) {
      throw std::logic_error("a shuffle among part of a warp");
    }
    Thread& thread = threads_[now_];
    thread.value = value;
    thread.with = with;
    Wait(State::kAtShuffle);
    return thread.value;
  }

  // Whose thread runs; null between launches.
  inline static Block* running = nullptr;

 private:
  static constexpr size_t kStack = size_t{256} << 10;
  static constexpr unsigned kWarp = 32;
  enum class State { kReady, kAtBarrier, kAtShuffle, kDone };
  struct Thread {
    ucontext_t context;
    State state;
    float value;
    int with;
  };

  void Prepare(size_t number) {
    Thread& thread = threads_[number];
    thread.state = State::kReady;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stacks_[number].get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = &scheduler_;
    makecontext(&thread.context, &Block::Start, 0);
  }
  static void Start() {
    running->kernel_();
    running->threads_[running->now_].state = State::kDone;
  }

  void Wait(State state) {
    const unsigned self = now_;
    threads_[self].state = state;
    swapcontext(&threads_[self].context, &scheduler_);
  }

  static unsigned InOrder(unsigned i, unsigned count) {
    switch (order) {
      case Order::kUp:
        return i;
      case Order::kDown:
        return count - 1 - i;
      case Order::kInterleaved:
        return i % 2 == 0 ? i / 2 : count - 1 - i / 2;
    }
    throw std::logic_error("no such order");
  }

  // Each warp as far as it gets; false when all are done.
  bool RunWarps() {
    const auto warps = static_cast<unsigned>(threads_.size()) / kWarp;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned first = InOrder(i, warps) * kWarp;
      do {
        RunReady(first);
      } while (EndShuffle(first));
    }
    return std::any_of(threads_.begin(), threads_.end(), [](const Thread& t) {
      return t.state != State::kDone;
    });
  }

  void RunReady(unsigned first) {
    for (unsigned i = 0; i < kWarp; ++i) {
      now_ = first + InOrder(i, kWarp);
      if (threads_[now_].state == State::kReady) {
        threadIdx = {now_, 0, 0};
        swapcontext(&scheduler_, &threads_[now_].context);
      }
    }
  }

  // True where the warp was waiting for itself.
  bool EndShuffle(unsigned first) {
    Thread* const warp = &threads_[first];
    std::array<float, kWarp> values;
    unsigned waiting = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      values[lane] = warp[lane].value;
      if (warp[lane].state == State::kAtShuffle) ++waiting;
    }
    if (waiting == 0) return false;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (waiting < kWarp || warp[lane].with != warp[0].with) {
        throw std::logic_error("lanes of a warp that do not come to a shuffle");
      }
      warp[lane].value = values[lane ^ static_cast<unsigned>(warp[lane].with)];
      warp[lane].state = State::kReady;
    }
    return true;
  }

  void EndBarrier() {
    for (Thread& thread : threads_) {
      if (thread.state != State::kAtBarrier) {
        throw std::logic_error("threads that do not come to a barrier");
      }
      thread.state = State::kReady;
    }
  }

  std::function<void()> kernel_;
  std::vector<Thread> threads_;
  // Kept, since to touch new ones takes longer than most kernels.
  inline static std::vector<std::unique_ptr<std::byte[]>> stacks_;
  ucontext_t scheduler_;
  unsigned now_ = 0;
};

}  // namespace trainfare::trainer::cuda_on_cpu

inline void __syncthreads() {
  trainfare::trainer::cuda_on_cpu::Block::running->Barrier();
}
inline float __shfl_xor_sync(unsigned lanes, float value, int with) {
  return trainfare::trainer::cuda_on_cpu::Block::running->ShuffleXor(
      lanes, value, with);
}
inline float normcdff(float x) { return 0.5F * std::erfc(-x * 0.70710678F); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

namespace trainfare::trainer {

template <class... Parameters, class... Arguments>
cudaError_t LaunchKernel(void (*kernel)(Parameters...),
                         dim3 grid,
                         dim3 block,
                         cudaStream_t /*stream*/,
                         const Arguments&... arguments) {
  // Limits of compute capability 7.5 to 9.0.
  if (grid.x == 0 || grid.x > 0x7fffffffU || grid.y == 0 || grid.y > 65535 ||
      grid.z != 1 || block.x == 0 || block.x > 1024 || block.x % 32 != 0 ||
      block.y != 1 || block.z != 1) {
    return cudaErrorInvalidConfiguration;
  }
  gridDim = grid;
  blockDim = block;
  cuda_on_cpu::Block threads(block.x, [&] { kernel(arguments...); });
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y, 0};
      threads.Run();
    }
  }
  return cudaSuccess;
}

}  // namespace trainfare::trainer
