#include "trainer/fused_adan.h"

#include <algorithm>
#include <cmath>

#include "trainer/parallel.h"
#include "trainer/vector_versions.h"

namespace trainfare::trainer {

TRAINFARE_VECTOR_VERSIONS("avx512f", "avx2")
void AdanRange(const AdanTensor& tensor,
               const AdanScalars& scalars,
               int64_t first,
               int64_t last) {
  // No two of the arrays overlap, and the loop below must know it.
  float* __restrict parameter = tensor.parameter;
  const float* __restrict gradient = tensor.gradient;
  float* __restrict first_moment = tensor.first_moment;
  float* __restrict difference_moment = tensor.difference_moment;
  float* __restrict second_moment = tensor.second_moment;
  float* __restrict previous = tensor.previous_gradient;
  const AdanScalars s = scalars;
  const float rate = tensor.rate;
  const float shrinkage = tensor.shrinkage;
  const float old_weight = s.first_step ? 0.0F : 1.0F;
  for (int64_t i = first; i < last; ++i) {
    const float g = gradient[i];
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
    parameter[i] = (parameter[i] - rate * update) * shrinkage;
    first_moment[i] = m;
    difference_moment[i] = v;
    second_moment[i] = n;
    previous[i] = g;
  }
}

void FusedAdan(const std::vector<AdanTensor>& tensors,
               const AdanScalars& scalars) {
  // Chunks of all tensors in one list: one parallel region a step, and small
  // tensors do not leave threads idle.
  std::vector<int64_t> first_chunk = {0};
  for (const AdanTensor& tensor : tensors) {
    first_chunk.push_back(first_chunk.back() +
                          (tensor.size + kAdanChunk - 1) / kAdanChunk);
  }
  ParallelRanges(first_chunk.back(), [&](int64_t begin, int64_t end) {
    auto which = static_cast<size_t>(
        std::upper_bound(first_chunk.begin(), first_chunk.end(), begin) -
        first_chunk.begin() - 1);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      while (first_chunk[which + 1] <= chunk) ++which;
      const AdanTensor& tensor = tensors[which];
      const int64_t first = (chunk - first_chunk[which]) * kAdanChunk;
      AdanRange(
          tensor, scalars, first, std::min(first + kAdanChunk, tensor.size));
    }
  });
}

}  // namespace trainfare::trainer
