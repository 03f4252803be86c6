#pragma once

// Bytes of a frozen base of few bits, as it is kept beside adapters.

#include <cstdint>

#include "model/precision.h"
#include "model/trainable.h"
#include "model/workload.h"

namespace trainfare::model {

// Of so many elements: as their products take them, in 4 bits with the scales of
// these, or as bitsandbytes and Quanto keep them (QuantisedBytes).
inline int64_t BaseBytes(const Workload& w, int64_t elements) {
  const bool in_fp4 = w.precision == Precision::kFp4 && BaseAsProducts(w);
  return in_fp4 ? OperandBytes(w.precision, elements)
                : QuantisedBytes(elements, w.trainable);
}

}  // namespace trainfare::model
