#pragma once

// Division of Ceres's autodiff scalar, rounded as double's: Ceres multiplies
// with a reciprocal, whose value is off that of the same formula in double in
// the last bit. With these one evaluation is both the time and its slopes. What
// evaluates a formula in Jets includes this behind <ceres/jet.h>.

namespace ceres {

template <typename T, int N>
struct Jet;

template <int N>
Jet<double, N> operator/(const Jet<double, N>& f, const Jet<double, N>& g) {
  const double quotient = f.a / g.a;
  return Jet<double, N>(quotient, (f.v - quotient * g.v) * (1.0 / g.a));
}

template <int N>
Jet<double, N> operator/(const Jet<double, N>& f, double divisor) {
  return Jet<double, N>(f.a / divisor, f.v * (1.0 / divisor));
}

}  // namespace ceres
