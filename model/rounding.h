#pragma once

#include <cstdint>

namespace trainfare::model {

// a / b rounded up. a >= 0, b > 0.
constexpr int64_t CeilDivide(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// a rounded up to a multiple of b. a >= 0, b > 0.
constexpr int64_t CeilToMultiple(int64_t a, int64_t b) {
  return CeilDivide(a, b) * b;
}

}  // namespace trainfare::model
