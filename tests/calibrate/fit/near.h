#pragma once

// Equal but for rounding, and for what a solver leaves over.

#include <doctest/doctest.h>

namespace trainfare::calibrate {

inline doctest::Approx Near(double value, double tolerance = 1e-9) {
  return doctest::Approx(value).epsilon(tolerance).scale(0);
}

}  // namespace trainfare::calibrate
