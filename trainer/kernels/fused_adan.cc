#include "trainer/kernels/fused_adan.h"

#include <cmath>

#include "trainer/kernels/fused_update.h"
#include "trainer/kernels/vector_versions.h"

namespace trainfare::trainer {
namespace {

// Elements [first, last) of one tensor.
template <class T>
TRAINFARE_INLINE void Update(const AdanTensor& tensor,
                             const AdanScalars& scalars,
                             int64_t first,
                             int64_t last) {
  // No two of the arrays overlap, and the loop below must know it.
  float* __restrict parameter = tensor.parameter;
  const T* __restrict gradient = static_cast<const T*>(tensor.gradient);
  T* __restrict narrow = static_cast<T*>(tensor.narrow_parameter);
  float* __restrict first_moment = tensor.first_moment;
  float* __restrict difference_moment = tensor.difference_moment;
  float* __restrict second_moment = tensor.second_moment;
  float* __restrict previous = tensor.previous_gradient;
  const AdanScalars s = scalars;
  const float factor = FactorAt(s.gradient_factor);
  const float rate = tensor.rate;
  const float shrinkage = tensor.shrinkage;
  const float old_weight = s.first_step ? 0.0F : 1.0F;
  for (int64_t i = first; i < last; ++i) {
    const float g = WideGradient(gradient[i], factor);
    const float difference = (g - previous[i]) * old_weight;
    const float ahead = g + s.beta2 * difference;
    const float m = s.beta1 * first_moment[i] + (1.0F - s.beta1) * g;
    const float v =
        s.beta2 * difference_moment[i] + (1.0F - s.beta2) * difference;
    const float n =
        s.beta3 * second_moment[i] + (1.0F - s.beta3) * ahead * ahead;
    const float denominator = std::sqrt(n) * s.second_correction + s.epsilon;
    const float update =
        (m * s.first_correction + v * s.difference_correction) / denominator;
    const float p = (parameter[i] - rate * update) * shrinkage;
    parameter[i] = p;
    KeepNarrow(narrow, i, p);
    first_moment[i] = m;
    difference_moment[i] = v;
    second_moment[i] = n;
    previous[i] = g;
  }
}

TRAINFARE_UPDATE_VERSIONS(Update, AdanTensor, AdanScalars)

}  // namespace

void FusedAdan(const std::vector<AdanTensor>& tensors,
               const AdanScalars& scalars) {
  UpdateChunks(tensors,
               kAdanChunk,
               [&](const AdanTensor& tensor, int64_t first, int64_t last) {
                 UpdateRange(tensor, scalars, first, last);
               });
}

}  // namespace trainfare::trainer
