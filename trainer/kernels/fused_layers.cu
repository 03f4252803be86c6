// The fused stack on a GPU: what trainer/kernels/fused_kernels.cc does on a
// CPU, with the same formulas. Arithmetic is fp32; inputs and their gradients
// may be half or bfloat16. A row is a block's (LayerNorm) or a warp's
// (softmax), so that its sums stay on chip; sums over rows go to kFusedChunks
// partial sums, which the caller adds.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cfloat>
#include <type_traits>

#include "trainer/kernels/fused_layers.h"
#include "trainer/kernels/launch.cuh"

namespace trainfare::trainer {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kMostBlocks = 65535;

__device__ float Load(const float* p, int64_t i) { return p[i]; }
__device__ float Load(const __half* p, int64_t i) { return __half2float(p[i]); }
__device__ float Load(const __nv_bfloat16* p, int64_t i) {
  return __bfloat162float(p[i]);
}
__device__ void Store(float* p, int64_t i, float value) { p[i] = value; }
__device__ void Store(__half* p, int64_t i, float value) {
  p[i] = __float2half(value);
}
__device__ void Store(__nv_bfloat16* p, int64_t i, float value) {
  p[i] = __float2bfloat16(value);
}

// SplitMix64 (Steele, Lea & Flood 2014) of the element's number.
__device__ bool Kept(const MaskDraw& draw, int64_t i) {
  uint64_t value = draw.key + static_cast<uint64_t>(i) + 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  value ^= value >> 31;
  return static_cast<uint32_t>(value >> 32) >= draw.threshold;
}

template <Activation activation>
__device__ float Activated(float x) {
  if constexpr (activation == Activation::kGelu) {
    return x * normcdff(x);
  } else if constexpr (activation == Activation::kGeluTanh) {
    const float u = 0.7978845608F * (x + 0.044715F * x * x * x);
    return 0.5F * x * (1.0F + tanhf(u));
  } else {
    return x > 0.0F ? x : 0.0F;
  }
}

template <Activation activation>
__device__ float Slope(float x) {
  if constexpr (activation == Activation::kGelu) {
    return normcdff(x) + x * 0.3989422804F * expf(-0.5F * x * x);
  } else if constexpr (activation == Activation::kGeluTanh) {
    const float u = 0.7978845608F * (x + 0.044715F * x * x * x);
    const float t = tanhf(u);
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.7978845608F *
                                   (1.0F + 3.0F * 0.044715F * x * x);
  } else {
    return x > 0.0F ? 1.0F : 0.0F;
  }
}

__device__ float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, offset);
  }
  return value;
}
__device__ float WarpMax(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}
// For all threads of a block of kThreads; ends with the block in step.
__device__ float BlockSum(float value) {
  __shared__ float sums[kWarps];
  value = WarpSum(value);
  __syncthreads();  // the last sum is read
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0.0F;
  for (int i = 0; i < kWarps; ++i) sum += sums[i];
  return sum;
}

template <class T, Activation activation>
__global__ void ActivateKernel(BiasActivation a) {
  const T* input = static_cast<const T*>(a.input);
  const float* bias = static_cast<const float*>(a.bias);
  T* output = static_cast<T*>(a.output);
  const int64_t count = a.rows * a.columns;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count;
       i += stride) {
    Store(
        output, i, Activated<activation>(Load(input, i) + bias[i % a.columns]));
  }
}

// Block (x, chunk): a thread a column, down the rows of a chunk.
template <class T, Activation activation>
__global__ void ActivateGradientKernel(BiasActivation a) {
  const int64_t column =
      static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= a.columns) return;
  const int64_t chunk = blockIdx.y;
  const T* input = static_cast<const T*>(a.input);
  const T* gradient = static_cast<const T*>(a.gradient);
  T* output = static_cast<T*>(a.input_gradient);
  const float bias = static_cast<const float*>(a.bias)[column];
  float sum = 0.0F;
  const int64_t last = a.rows * (chunk + 1) / kFusedChunks;
  for (int64_t row = a.rows * chunk / kFusedChunks; row < last; ++row) {
    const int64_t i = row * a.columns + column;
    const float g =
        Load(gradient, i) * Slope<activation>(Load(input, i) + bias);
    Store(output, i, g);
    sum += g;
  }
  static_cast<float*>(a.bias_partials)[chunk * a.columns + column] = sum;
}

// A row a block at a time.
template <class T>
__global__ void AddNormKernel(AddNorm a) {
  const T* input = static_cast<const T*>(a.input);
  const float* bias = static_cast<const float*>(a.bias);
  const float* residual = static_cast<const float*>(a.residual);
  const float* weight = static_cast<const float*>(a.weight);
  const float* shift = static_cast<const float*>(a.shift);
  float* sum = static_cast<float*>(a.sum);
  float* normed = static_cast<float*>(a.normed);
  const float scale = static_cast<float>(a.scale);
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const int64_t begin = row * a.columns;
    float total = 0.0F;
    for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const int64_t i = begin + c;
      float value = Load(input, i) + bias[c];
      if (a.mask != nullptr) {
        const bool kept = Kept(a.draw, i);
        a.mask[i] = kept ? 1 : 0;
        value = kept ? value * scale : 0.0F;
      }
      value += residual[i];
      sum[i] = value;
      total += value;
    }
    // A thread reads back what it wrote itself; only sums cross threads.
    const float mean = BlockSum(total) / static_cast<float>(a.columns);
    float square = 0.0F;
    for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const float off = sum[begin + c] - mean;
      square += off * off;
    }
    const float variance = BlockSum(square) / static_cast<float>(a.columns);
    const float deviation = rsqrtf(variance + static_cast<float>(a.epsilon));
    for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const int64_t i = begin + c;
      normed[i] = (sum[i] - mean) * deviation * weight[c] + shift[c];
    }
    if (threadIdx.x == 0) {
      static_cast<float*>(a.mean)[row] = mean;
      static_cast<float*>(a.deviation)[row] = deviation;
    }
  }
}

template <class T>
__global__ void AddNormGradientKernel(AddNorm a) {
  const float* weight = static_cast<const float*>(a.weight);
  const float* sum = static_cast<const float*>(a.sum);
  const float* gradient = static_cast<const float*>(a.normed_gradient);
  const float* own = static_cast<const float*>(a.sum_gradient);
  float* residual = static_cast<float*>(a.residual_gradient);
  T* input = static_cast<T*>(a.input_gradient);
  const float scale = static_cast<float>(a.scale);
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const int64_t begin = row * a.columns;
    const float mean = static_cast<const float*>(a.mean)[row];
    const float deviation = static_cast<const float*>(a.deviation)[row];
    float h_sum = 0.0F;
    float hx_sum = 0.0F;
    for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const float h = gradient[begin + c] * weight[c];
      h_sum += h;
      hx_sum += h * (sum[begin + c] - mean) * deviation;
    }
    const float mean_h = BlockSum(h_sum) / static_cast<float>(a.columns);
    const float mean_hx = BlockSum(hx_sum) / static_cast<float>(a.columns);
    for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const int64_t i = begin + c;
      const float x = (sum[i] - mean) * deviation;
      float g = (gradient[i] * weight[c] - mean_h - x * mean_hx) * deviation;
      if (own != nullptr) g += own[i];
      residual[i] = g;
      if (input != nullptr) {
        const bool kept = a.mask == nullptr || a.mask[i] != 0;
        Store(input, i, kept ? g * scale : 0.0F);
      }
    }
  }
}

// Behind it: sums over the rows of a chunk, a thread a column.
__global__ void AddNormSumsKernel(AddNorm a) {
  const int64_t column =
      static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= a.columns) return;
  const int64_t chunk = blockIdx.y;
  const float* sum = static_cast<const float*>(a.sum);
  const float* gradient = static_cast<const float*>(a.normed_gradient);
  const float* residual = static_cast<const float*>(a.residual_gradient);
  const float* mean = static_cast<const float*>(a.mean);
  const float* deviation = static_cast<const float*>(a.deviation);
  const float scale = static_cast<float>(a.scale);
  float bias_sum = 0.0F;
  float weight_sum = 0.0F;
  float shift_sum = 0.0F;
  const int64_t last = a.rows * (chunk + 1) / kFusedChunks;
  for (int64_t row = a.rows * chunk / kFusedChunks; row < last; ++row) {
    const int64_t i = row * a.columns + column;
    const bool kept = a.mask == nullptr || a.mask[i] != 0;
    bias_sum += kept ? residual[i] * scale : 0.0F;
    weight_sum += gradient[i] * (sum[i] - mean[row]) * deviation[row];
    shift_sum += gradient[i];
  }
  float* out = static_cast<float*>(a.partials) + chunk * a.columns + column;
  const int64_t plane = kFusedChunks * a.columns;
  out[0] = bias_sum;
  out[plane] = weight_sum;
  out[2 * plane] = shift_sum;
}

// A row a warp at a time.
template <class T>
__global__ void SoftmaxKernel(SoftmaxDropout a) {
  const T* scores = static_cast<const T*>(a.scores);
  const float* padding = static_cast<const float*>(a.padding);
  T* probabilities = static_cast<T*>(a.probabilities);
  T* dropped = static_cast<T*>(a.dropped);
  const float score_scale = static_cast<float>(a.score_scale);
  const float scale = static_cast<float>(a.scale);
  const int lane = threadIdx.x % kWarp;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (int64_t row = first; row < a.rows;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t begin = row * a.columns;
    const int64_t seen =
        a.causal ? min(a.columns, row % a.queries + 1) : a.columns;
    const float* added = padding == nullptr
                             ? nullptr
                             : padding + row / a.rows_per_batch * a.columns;
    const auto score = [&](int64_t c) {
      const float value = Load(scores, begin + c) * score_scale;
      return added == nullptr ? value : value + added[c];
    };
    float largest = -FLT_MAX;
    for (int64_t c = lane; c < seen; c += kWarp) {
      largest = fmaxf(largest, score(c));
    }
    largest = WarpMax(largest);
    float total = 0.0F;
    for (int64_t c = lane; c < seen; c += kWarp) {
      total += expf(score(c) - largest);
    }
    const float inverse = 1.0F / WarpSum(total);
    for (int64_t c = lane; c < a.columns; c += kWarp) {
      const int64_t i = begin + c;
      const float p = c < seen ? expf(score(c) - largest) * inverse : 0.0F;
      Store(probabilities, i, p);
      if (a.mask == nullptr) continue;
      const bool kept = Kept(a.draw, i);
      a.mask[i] = kept ? 1 : 0;
      Store(dropped, i, kept ? p * scale : 0.0F);
    }
  }
}

template <class T>
__global__ void SoftmaxGradientKernel(SoftmaxDropout a) {
  const T* probabilities = static_cast<const T*>(a.probabilities);
  const T* gradient = static_cast<const T*>(a.gradient);
  T* output = static_cast<T*>(a.score_gradient);
  const float score_scale = static_cast<float>(a.score_scale);
  const float scale = static_cast<float>(a.scale);
  const int lane = threadIdx.x % kWarp;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (int64_t row = first; row < a.rows;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t begin = row * a.columns;
    const auto behind = [&](int64_t i) {  // dropout
      const bool kept = a.mask == nullptr || a.mask[i] != 0;
      return kept ? Load(gradient, i) * scale : 0.0F;
    };
    float total = 0.0F;
    for (int64_t c = lane; c < a.columns; c += kWarp) {
      total += behind(begin + c) * Load(probabilities, begin + c);
    }
    const float mean = WarpSum(total);
    for (int64_t c = lane; c < a.columns; c += kWarp) {
      const int64_t i = begin + c;
      Store(
          output, i, Load(probabilities, i) * (behind(i) - mean) * score_scale);
    }
  }
}

unsigned Blocks(int64_t work, int64_t each) {
  return static_cast<unsigned>(
      std::min(std::max<int64_t>((work + each - 1) / each, 1), kMostBlocks));
}
dim3 ColumnGrid(int64_t columns) {
  return dim3(Blocks(columns, kThreads), static_cast<unsigned>(kFusedChunks));
}

// body(T()) for the type's T.
template <class Body>
cudaError_t ForType(ElementType type, const Body& body) {
  switch (type) {
    case ElementType::kFloat:
      return body(float());
    case ElementType::kHalf:
      return body(__half());
    case ElementType::kBfloat16:
      return body(__nv_bfloat16());
    case ElementType::kDouble:
      break;  // for checks, which a CPU does
  }
  return cudaErrorInvalidValue;
}

template <Activation activation>
using ActivationConstant = std::integral_constant<Activation, activation>;

// body(ActivationConstant<activation>()).
template <class Body>
cudaError_t ForActivation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::kGelu:
      return body(ActivationConstant<Activation::kGelu>());
    case Activation::kGeluTanh:
      return body(ActivationConstant<Activation::kGeluTanh>());
    case Activation::kRelu:
      return body(ActivationConstant<Activation::kRelu>());
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t LaunchForward(const BiasActivation& a, cudaStream_t stream) {
  const unsigned blocks = Blocks(a.rows * a.columns, 4 * kThreads);
  return ForType(a.type, [&](auto value) {
    using T = decltype(value);
    return ForActivation(a.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      return LaunchKernel(
          ActivateKernel<T, kActivation>, blocks, kThreads, stream, a);
    });
  });
}

cudaError_t LaunchBackward(const BiasActivation& a, cudaStream_t stream) {
  return ForType(a.type, [&](auto value) {
    using T = decltype(value);
    return ForActivation(a.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      return LaunchKernel(ActivateGradientKernel<T, kActivation>,
                          ColumnGrid(a.columns),
                          kThreads,
                          stream,
                          a);
    });
  });
}

cudaError_t LaunchForward(const AddNorm& a, cudaStream_t stream) {
  return ForType(a.type, [&](auto value) {
    return LaunchKernel(
        AddNormKernel<decltype(value)>, Blocks(a.rows, 1), kThreads, stream, a);
  });
}

cudaError_t LaunchBackward(const AddNorm& a, cudaStream_t stream) {
  const cudaError_t error = ForType(a.type, [&](auto value) {
    return LaunchKernel(AddNormGradientKernel<decltype(value)>,
                        Blocks(a.rows, 1),
                        kThreads,
                        stream,
                        a);
  });
  if (error != cudaSuccess) return error;
  return LaunchKernel(
      AddNormSumsKernel, ColumnGrid(a.columns), kThreads, stream, a);
}

cudaError_t LaunchForward(const SoftmaxDropout& a, cudaStream_t stream) {
  return ForType(a.type, [&](auto value) {
    return LaunchKernel(SoftmaxKernel<decltype(value)>,
                        Blocks(a.rows, kWarps),
                        kThreads,
                        stream,
                        a);
  });
}

cudaError_t LaunchBackward(const SoftmaxDropout& a, cudaStream_t stream) {
  return ForType(a.type, [&](auto value) {
    return LaunchKernel(SoftmaxGradientKernel<decltype(value)>,
                        Blocks(a.rows, kWarps),
                        kThreads,
                        stream,
                        a);
  });
}

}  // namespace trainfare::trainer
