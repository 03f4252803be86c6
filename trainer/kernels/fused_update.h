#pragma once

// What optimizers in one pass share on a CPU: gradients in fp32, bf16 or fp16,
// and parameters that are their fp32 masters rounded.

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include "trainer/kernels/fused_kernels.h"
#include "trainer/kernels/vector_versions.h"
#include "trainer/runtime/parallel.h"

namespace trainfare::trainer {

inline float FactorAt(const float* factor) {
  return factor == nullptr ? 1.0F : *factor;
}

template <class T>
TRAINFARE_INLINE float WideGradient(T gradient, float factor) {
  if constexpr (std::is_same_v<T, float>) {
    return gradient;
  } else {
    return static_cast<float>(gradient) * factor;
  }
}

template <class T>
TRAINFARE_INLINE void KeepNarrow(T* narrow, int64_t i, float value) {
  if constexpr (!std::is_same_v<T, float>) narrow[i] = static_cast<T>(value);
}

// Calls update(tensor, first, last) on chunks that cover all tensors.
template <class Tensor, class Update>
void UpdateChunks(const std::vector<Tensor>& tensors,
                  int64_t chunk,
                  const Update& update) {
  std::vector<int64_t> sizes;
  sizes.reserve(tensors.size());
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.size);
  ParallelChunks(sizes, chunk, [&](size_t which, int64_t first, int64_t last) {
    update(tensors[which], first, last);
  });
}

}  // namespace trainfare::trainer

// UpdateRange(tensor, scalars, first, last): `update<T>` for the type that the
// scalars name, compiled for each instruction set.
#define TRAINFARE_UPDATE_VERSION(name, update, Tensor, Scalars, T) \
  TRAINFARE_VECTOR_VERSIONS("avx512f", "avx2")                     \
  void name(const Tensor& tensor,                                  \
            const Scalars& scalars,                                \
            int64_t first,                                         \
            int64_t last) {                                        \
    update<T>(tensor, scalars, first, last);                       \
  }
#define TRAINFARE_UPDATE_VERSIONS(update, Tensor, Scalars)                 \
  TRAINFARE_UPDATE_VERSION(UpdateFloat, update, Tensor, Scalars, float)    \
  TRAINFARE_UPDATE_VERSION(                                                \
      UpdateBfloat16, update, Tensor, Scalars, c10::BFloat16)              \
  TRAINFARE_UPDATE_VERSION(UpdateHalf, update, Tensor, Scalars, c10::Half) \
  void UpdateRange(const Tensor& tensor,                                   \
                   const Scalars& scalars,                                 \
                   int64_t first,                                          \
                   int64_t last) {                                         \
    switch (scalars.type) {                                                \
      case ElementType::kBfloat16:                                         \
        return UpdateBfloat16(tensor, scalars, first, last);               \
      case ElementType::kHalf:                                             \
        return UpdateHalf(tensor, scalars, first, last);                   \
      default:                                                             \
        return UpdateFloat(tensor, scalars, first, last);                  \
    }                                                                      \
  }
