#include "trainer/kernels/fused_adamw.h"

#include <cmath>

#include "trainer/kernels/fused_update.h"
#include "trainer/kernels/vector_versions.h"

namespace trainfare::trainer {
namespace {

// Elements [first, last) of one tensor.
template <class T>
TRAINFARE_INLINE void Update(const AdamWTensor& tensor,
                             const AdamWScalars& scalars,
                             int64_t first,
                             int64_t last) {
  // No two of the arrays overlap, and the loop below must know it.
  float* __restrict parameter = tensor.parameter;
  const T* __restrict gradient = static_cast<const T*>(tensor.gradient);
  T* __restrict narrow = static_cast<T*>(tensor.narrow_parameter);
  float* __restrict first_moment = tensor.first_moment;
  float* __restrict second_moment = tensor.second_moment;
  const AdamWScalars s = scalars;
  const float factor = FactorAt(s.gradient_factor);
  const float step_size = tensor.step_size;
  const float shrinkage = tensor.shrinkage;
  for (int64_t i = first; i < last; ++i) {
    const float g = WideGradient(gradient[i], factor);
    const float m = s.beta1 * first_moment[i] + (1.0F - s.beta1) * g;
    const float v = s.beta2 * second_moment[i] + (1.0F - s.beta2) * g * g;
    const float denominator = std::sqrt(v) * s.second_correction + s.epsilon;
    const float p = parameter[i] * shrinkage - step_size * m / denominator;
    parameter[i] = p;
    KeepNarrow(narrow, i, p);
    first_moment[i] = m;
    second_moment[i] = v;
  }
}

TRAINFARE_UPDATE_VERSIONS(Update, AdamWTensor, AdamWScalars)

}  // namespace

void FusedAdamW(const std::vector<AdamWTensor>& tensors,
                const AdamWScalars& scalars) {
  UpdateChunks(tensors,
               kAdamWChunk,
               [&](const AdamWTensor& tensor, int64_t first, int64_t last) {
                 UpdateRange(tensor, scalars, first, last);
               });
}

}  // namespace trainfare::trainer
