#pragma once

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// What sums and exponentials are computed in: fp32, or fp64 where `type` is.
inline at::ScalarType WideType(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}
inline at::Tensor Widened(const at::Tensor& tensor) {
  return tensor.to(WideType(tensor.scalar_type()));
}

}  // namespace trainfare::trainer
