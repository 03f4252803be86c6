#pragma once

// Equal but for rounding, or within a share of the larger of both: doctest's own
// Approx adds 1 to that, by which all that is small is equal.

#include <doctest/doctest.h>

namespace trainfare {

inline doctest::Approx Near(double value, double relative = 1e-9) {
  return doctest::Approx(value).epsilon(relative).scale(0);
}

}  // namespace trainfare
