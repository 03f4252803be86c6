#include "trainer/kernels/adan.h"
#include "trainer/kernels/chunked_update.cuh"

namespace trainfare::trainer {
namespace {

struct AdanRule {
  using Tensor = AdanTensor;
  using Scalars = AdanScalars;
  static constexpr int kStates = 4;
  static constexpr int64_t kChunk = kAdanChunk;

  __device__ static float* State(const Tensor& tensor, int number) {
    switch (number) {
      case 0:
        return tensor.first_moment;
      case 1:
        return tensor.difference_moment;
      case 2:
        return tensor.second_moment;
      default:
        return tensor.previous_gradient;
    }
  }
  __device__ static void Update(float& parameter,
                                float gradient,
                                float (&state)[kStates],
                                const Scalars& s,
                                const Tensor& tensor) {
    auto& [mean, mean_difference, square, previous] = state;
    const float difference = s.first_step ? 0.0F : gradient - previous;
    const float ahead = gradient + s.beta2 * difference;
    mean = s.beta1 * mean + (1.0F - s.beta1) * gradient;
    mean_difference = s.beta2 * mean_difference + (1.0F - s.beta2) * difference;
    square = s.beta3 * square + (1.0F - s.beta3) * ahead * ahead;
    const float denominator = sqrtf(square) * s.second_correction + s.epsilon;
    const float update = (mean * s.first_correction +
                          mean_difference * s.difference_correction) /
                         denominator;
    parameter = (parameter - tensor.rate * update) * tensor.shrinkage;
    previous = gradient;
  }
};

}  // namespace

cudaError_t LaunchAdan(const AdanTensor* tensors,
                       size_t count,
                       const AdanScalars& scalars,
                       cudaStream_t stream) {
  using chunked::Launch;
  switch (scalars.type) {
    case ElementType::kFloat:
      return Launch<AdanRule, float>(tensors, count, scalars, stream);
    case ElementType::kHalf:
      return Launch<AdanRule, __half>(tensors, count, scalars, stream);
    case ElementType::kBfloat16:
      return Launch<AdanRule, __nv_bfloat16>(tensors, count, scalars, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace trainfare::trainer
