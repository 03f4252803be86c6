#include <algorithm>
#include <cstdint>

#include "trainer/kernels/adan.h"

namespace trainfare::trainer {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;  // floats of a 16-byte load
constexpr int kUnroll = 2;  // loads of each array in flight a thread
constexpr size_t kTensorsPerLaunch = 400;

// The list travels in the kernel's arguments, 32 764 bytes of them from CUDA
// 12.1 and compute capability 7.0 on: nothing to copy, nothing to wait for.
struct TensorList {
  AdanTensor tensors[kTensorsPerLaunch];
  // Chunks before each tensor, and all of them behind the last.
  int first_chunk[kTensorsPerLaunch + 1];
  int count;
};
static_assert(sizeof(TensorList) + sizeof(AdanScalars) <= 32764,
              "does not fit a kernel's arguments");

struct Element {
  float parameter, gradient, mean, mean_difference, square, previous;
};

__device__ void Update(Element& e,
                       const AdanScalars& s,
                       float rate,
                       float shrinkage) {
  const float difference = s.first_step ? 0.0F : e.gradient - e.previous;
  const float ahead = e.gradient + s.beta2 * difference;
  e.mean = s.beta1 * e.mean + (1.0F - s.beta1) * e.gradient;
  e.mean_difference =
      s.beta2 * e.mean_difference + (1.0F - s.beta2) * difference;
  e.square = s.beta3 * e.square + (1.0F - s.beta3) * ahead * ahead;
  const float denominator = sqrtf(e.square) * s.second_correction + s.epsilon;
  const float update = (e.mean * s.first_correction +
                        e.mean_difference * s.difference_correction) /
                       denominator;
  e.parameter = (e.parameter - rate * update) * shrinkage;
  e.previous = e.gradient;
}

__device__ bool Aligned(const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) & 15U) == 0;
}

__global__ void __launch_bounds__(kThreads)
    AdanKernel(const __grid_constant__ TensorList list,
               const __grid_constant__ AdanScalars scalars) {
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
  const AdanTensor& tensor = list.tensors[low];
  const int64_t begin = (chunk - list.first_chunk[low]) * kAdanChunk;
  const int64_t left = tensor.size - begin;
  const int size = static_cast<int>(left < kAdanChunk ? left : kAdanChunk);
  float* const parameter = tensor.parameter + begin;
  const float* const gradient = tensor.gradient + begin;
  float* const mean = tensor.first_moment + begin;
  float* const mean_difference = tensor.difference_moment + begin;
  float* const square = tensor.second_moment + begin;
  float* const previous = tensor.previous_gradient + begin;
  const float rate = tensor.rate;
  const float shrinkage = tensor.shrinkage;

  int done = 0;
  if (Aligned(parameter) && Aligned(gradient) && Aligned(mean) &&
      Aligned(mean_difference) && Aligned(square) && Aligned(previous)) {
    constexpr int kStride = kThreads * kVector;
    const int vectors = size / kVector;
    done = vectors * kVector;
    for (int base = static_cast<int>(threadIdx.x) * kVector; base < done;
         base += kStride * kUnroll) {
      float4 p[kUnroll], g[kUnroll], m[kUnroll], v[kUnroll], n[kUnroll],
          o[kUnroll];
      // All loads first, so that they overlap.
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int at = base + u * kStride;
        if (at >= done) continue;
        p[u] = *reinterpret_cast<const float4*>(parameter + at);
        g[u] = *reinterpret_cast<const float4*>(gradient + at);
        m[u] = *reinterpret_cast<const float4*>(mean + at);
        v[u] = *reinterpret_cast<const float4*>(mean_difference + at);
        n[u] = *reinterpret_cast<const float4*>(square + at);
        o[u] = *reinterpret_cast<const float4*>(previous + at);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int at = base + u * kStride;
        if (at >= done) continue;
        const auto one = [&](float& pi,
                             float gi,
                             float& mi,
                             float& vi,
                             float& ni,
                             float& oi) {
          Element e = {pi, gi, mi, vi, ni, oi};
          Update(e, scalars, rate, shrinkage);
          pi = e.parameter;
          mi = e.mean;
          vi = e.mean_difference;
          ni = e.square;
          oi = e.previous;
        };
        one(p[u].x, g[u].x, m[u].x, v[u].x, n[u].x, o[u].x);
        one(p[u].y, g[u].y, m[u].y, v[u].y, n[u].y, o[u].y);
        one(p[u].z, g[u].z, m[u].z, v[u].z, n[u].z, o[u].z);
        one(p[u].w, g[u].w, m[u].w, v[u].w, n[u].w, o[u].w);
        *reinterpret_cast<float4*>(parameter + at) = p[u];
        *reinterpret_cast<float4*>(mean + at) = m[u];
        *reinterpret_cast<float4*>(mean_difference + at) = v[u];
        *reinterpret_cast<float4*>(square + at) = n[u];
        *reinterpret_cast<float4*>(previous + at) = o[u];
      }
    }
  }
  // The rest of the last vector, or all of a tensor that is not aligned.
  for (int at = done + static_cast<int>(threadIdx.x); at < size;
       at += kThreads) {
    Element e = {parameter[at],
                 gradient[at],
                 mean[at],
                 mean_difference[at],
                 square[at],
                 previous[at]};
    Update(e, scalars, rate, shrinkage);
    parameter[at] = e.parameter;
    mean[at] = e.mean;
    mean_difference[at] = e.mean_difference;
    square[at] = e.square;
    previous[at] = e.previous;
  }
}

}  // namespace

cudaError_t LaunchAdan(const AdanTensor* tensors,
                       size_t count,
                       const AdanScalars& scalars,
                       cudaStream_t stream) {
  for (size_t begin = 0; begin < count; begin += kTensorsPerLaunch) {
    TensorList list{};
    const size_t end = std::min(begin + kTensorsPerLaunch, count);
    int chunks = 0;
    for (size_t i = begin; i < end; ++i) {
      list.tensors[i - begin] = tensors[i];
      list.first_chunk[i - begin] = chunks;
      chunks +=
          static_cast<int>((tensors[i].size + kAdanChunk - 1) / kAdanChunk);
    }
    list.count = static_cast<int>(end - begin);
    list.first_chunk[list.count] = chunks;
    if (chunks == 0) continue;
    AdanKernel<<<static_cast<unsigned>(chunks), kThreads, 0, stream>>>(list,
                                                                       scalars);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace trainfare::trainer
