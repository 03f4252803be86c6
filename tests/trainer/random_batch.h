#pragma once

// One batch of random words, the same at every call.

#include <ATen/CPUGeneratorImpl.h>

#include <cstdint>

#include "model/architecture.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {

inline Batch RandomBatch(const model::Architecture& a,
                         int64_t batch,
                         int64_t length) {
  at::Generator random = at::detail::createCPUGenerator(11);
  Batch result;
  result.input_ids =
      at::randint(1, a.vocabulary, {batch, length}, random, at::kLong);
  if (a.family == model::Family::kDecoder) {
    result.labels = NextTokens(result.input_ids, {});
    return result;
  }
  if (a.family == model::Family::kEncoderDecoder) {
    result.labels =
        at::randint(1, a.vocabulary, {batch, length + 2}, random, at::kLong);
    result.target_ids = ShiftRight(result.labels, 0, 0);
    return result;
  }
  result.labels = at::randint(0, a.labels, {batch}, random, at::kLong);
  return result;
}

}  // namespace trainfare::trainer
