#include "trainer/kernels/adamw.h"
#include "trainer/kernels/chunked_update.cuh"

namespace trainfare::trainer {
namespace {

struct AdamWRule {
  using Tensor = AdamWTensor;
  using Scalars = AdamWScalars;
  static constexpr int kStates = 2;
  static constexpr int64_t kChunk = kAdamWChunk;

  __device__ static float* State(const Tensor& tensor, int number) {
    return number == 0 ? tensor.first_moment : tensor.second_moment;
  }
  __device__ static void Update(float& parameter,
                                float gradient,
                                float (&state)[kStates],
                                const Scalars& s,
                                const Tensor& tensor) {
    auto& [mean, square] = state;
    mean = s.beta1 * mean + (1.0F - s.beta1) * gradient;
    square = s.beta2 * square + (1.0F - s.beta2) * gradient * gradient;
    const float denominator = sqrtf(square) * s.second_correction + s.epsilon;
    parameter =
        parameter * tensor.shrinkage - tensor.step_size * mean / denominator;
  }
};

}  // namespace

cudaError_t LaunchAdamW(const AdamWTensor* tensors,
                        size_t count,
                        const AdamWScalars& scalars,
                        cudaStream_t stream) {
  using chunked::Launch;
  switch (scalars.type) {
    case ElementType::kHalf:
      return Launch<AdamWRule, __half>(tensors, count, scalars, stream);
    case ElementType::kBfloat16:
      return Launch<AdamWRule, __nv_bfloat16>(tensors, count, scalars, stream);
    default:
      return cudaErrorInvalidValue;  // fp32 is LibTorch's
  }
}

}  // namespace trainfare::trainer
