#include "model/frozen_base.h"

#include "model/precision.h"
#include "model/rounding.h"
#include "model/trainable.h"

namespace trainfare::model {

int64_t BaseBytes(const Workload& w, int64_t elements) {
  if (w.precision == Precision::kFp4 && BaseAsProducts(w)) {
    return OperandBytes(w.precision, elements);
  }
  if (w.trainable.base_bits == 8) return elements;
  constexpr int64_t kGroup = 64;
  constexpr int64_t kGroupOfGroups = 256;
  const int64_t groups = CeilDivide(elements, kGroup);
  const int64_t constants =
      w.trainable.double_quantised
          ? groups + CeilDivide(groups, kGroupOfGroups) * kSingle
          : groups * kSingle;
  return elements * w.trainable.base_bits / 8 + constants;
}

}  // namespace trainfare::model
