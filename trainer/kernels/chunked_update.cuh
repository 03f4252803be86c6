#pragma once

// An optimizer's update in one kernel over chunks of many tensors: vector
// loads, several in flight, arithmetic in fp32. Gradients are fp32, half or
// bfloat16; of narrow parameters the fp32 masters are updated and written back
// rounded.
//
// A Rule says what is updated:
//
//   Tensor, Scalars         structs of fused_adan.h or fused_adamw.h
//   kStates                 fp32 arrays besides the parameter
//   kChunk                  elements of one block
//   State(tensor, number)   such an array
//   Update(p, g, state, scalars, tensor)    one element

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "trainer/kernels/fused_kernels.h"
#include "trainer/kernels/launch.cuh"

namespace trainfare::trainer::chunked {

constexpr int kThreads = 256;
constexpr int kVector = 4;  // elements of a load
constexpr int kUnroll = 2;  // loads of each array in flight a thread
constexpr size_t kTensorsPerLaunch = 400;

// The list travels in the kernel's arguments, 32 764 bytes of them from CUDA
// 12.1 and compute capability 7.0 on: nothing to copy, nothing to wait for.
template <class Tensor>
struct TensorList {
  Tensor tensors[kTensorsPerLaunch];
  // Chunks before each tensor, and all of them behind the last.
  int first_chunk[kTensorsPerLaunch + 1];
  int count;
};

template <class T>
struct alignas(kVector * sizeof(T)) Vector {
  T value[kVector];
};

__device__ inline float Widened(float value) { return value; }
__device__ inline float Widened(__half value) { return __half2float(value); }
__device__ inline float Widened(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline void Round(float value, float& result) { result = value; }
__device__ inline void Round(float value, __half& result) {
  result = __float2half_rn(value);
}
__device__ inline void Round(float value, __nv_bfloat16& result) {
  result = __float2bfloat16_rn(value);
}

template <class T>
__device__ bool Aligned(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(Vector<T>) == 0;
}

// One function, however long: where its parts are functions of their own, even
// inlined ones, NVCC computes again in the loop what all elements share of the
// scalars (1 - beta and the like: 42 FADD for AdamW instead of 38).
template <class Rule, class T>
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(const __grid_constant__ TensorList<typename Rule::Tensor> list,
                 const __grid_constant__ typename Rule::Scalars scalars) {
  constexpr bool kNarrow = !std::is_same_v<T, float>;
  constexpr int kWide = 1 + Rule::kStates;  // the parameter, then its state
  // The tensor of this block's chunk, by bisection.
  const int chunk = static_cast<int>(blockIdx.x);
  int low = 0;
  int high = list.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (list.first_chunk[middle] <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const typename Rule::Tensor& tensor = list.tensors[low];
  const int64_t begin = (chunk - list.first_chunk[low]) * Rule::kChunk;
  const int64_t left = tensor.size - begin;
  const int size = static_cast<int>(left < Rule::kChunk ? left : Rule::kChunk);
  const T* const gradient = static_cast<const T*>(tensor.gradient) + begin;
  T* const narrow =
      kNarrow ? static_cast<T*>(tensor.narrow_parameter) + begin : nullptr;
  float* wide[kWide];
  wide[0] = tensor.parameter + begin;
#pragma unroll
  for (int s = 0; s < Rule::kStates; ++s) {
    wide[1 + s] = Rule::State(tensor, s) + begin;
  }
  float factor = 1.0F;
  if (kNarrow && scalars.gradient_factor != nullptr) {
    factor = *scalars.gradient_factor;
  }
  bool aligned = Aligned(gradient) && (!kNarrow || Aligned(narrow));
#pragma unroll
  for (int s = 0; s < kWide; ++s) aligned = aligned && Aligned(wide[s]);

  int done = 0;
  if (aligned) {
    constexpr int kStride = kThreads * kVector;
    done = size / kVector * kVector;
    for (int base = static_cast<int>(threadIdx.x) * kVector; base < done;
         base += kStride * kUnroll) {
      Vector<T> g[kUnroll];
      Vector<float> w[kUnroll][kWide];
      // All loads first, so that they overlap.
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int at = base + u * kStride;
        if (at >= done) continue;
        g[u] = *reinterpret_cast<const Vector<T>*>(gradient + at);
#pragma unroll
        for (int s = 0; s < kWide; ++s) {
          w[u][s] = *reinterpret_cast<const Vector<float>*>(wide[s] + at);
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int at = base + u * kStride;
        if (at >= done) continue;
        Vector<T> rounded;
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          float state[Rule::kStates];
#pragma unroll
          for (int s = 0; s < Rule::kStates; ++s) {
            state[s] = w[u][1 + s].value[v];
          }
          float p = w[u][0].value[v];
          float gradient_value = Widened(g[u].value[v]);
          if (kNarrow) gradient_value *= factor;
          Rule::Update(p, gradient_value, state, scalars, tensor);
          w[u][0].value[v] = p;
          if (kNarrow) Round(p, rounded.value[v]);
#pragma unroll
          for (int s = 0; s < Rule::kStates; ++s) {
            w[u][1 + s].value[v] = state[s];
          }
        }
#pragma unroll
        for (int s = 0; s < kWide; ++s) {
          *reinterpret_cast<Vector<float>*>(wide[s] + at) = w[u][s];
        }
        if (kNarrow) *reinterpret_cast<Vector<T>*>(narrow + at) = rounded;
      }
    }
  }
  // The rest of the last vector, or all of a tensor that is not aligned.
  for (int at = done + static_cast<int>(threadIdx.x); at < size;
       at += kThreads) {
    float state[Rule::kStates];
#pragma unroll
    for (int s = 0; s < Rule::kStates; ++s) state[s] = wide[1 + s][at];
    float p = wide[0][at];
    float gradient_value = Widened(gradient[at]);
    if (kNarrow) gradient_value *= factor;
    Rule::Update(p, gradient_value, state, scalars, tensor);
    wide[0][at] = p;
    if (kNarrow) Round(p, narrow[at]);
#pragma unroll
    for (int s = 0; s < Rule::kStates; ++s) wide[1 + s][at] = state[s];
  }
}

// One launch for every kTensorsPerLaunch tensors.
template <class Rule, class T>
cudaError_t Launch(const typename Rule::Tensor* tensors,
                   size_t count,
                   const typename Rule::Scalars& scalars,
                   cudaStream_t stream) {
  using List = TensorList<typename Rule::Tensor>;
  static_assert(sizeof(List) + sizeof(typename Rule::Scalars) <= 32764,
                "does not fit a kernel's arguments");
  for (size_t begin = 0; begin < count; begin += kTensorsPerLaunch) {
    List list{};
    const size_t end = std::min(begin + kTensorsPerLaunch, count);
    int chunks = 0;
    for (size_t i = begin; i < end; ++i) {
      list.tensors[i - begin] = tensors[i];
      list.first_chunk[i - begin] = chunks;
      chunks +=
          static_cast<int>((tensors[i].size + Rule::kChunk - 1) / Rule::kChunk);
    }
    list.count = static_cast<int>(end - begin);
    list.first_chunk[list.count] = chunks;
    if (chunks == 0) continue;
    const cudaError_t error = LaunchKernel(UpdateKernel<Rule, T>,
                                           static_cast<unsigned>(chunks),
                                           kThreads,
                                           stream,
                                           list,
                                           scalars);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace trainfare::trainer::chunked
