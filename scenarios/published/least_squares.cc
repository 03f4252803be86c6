#include "scenarios/published/least_squares.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace trainfare::scenarios {
namespace {

using Vector = std::vector<double>;

// A x = b by Gaussian elimination with pivots; A is positive definite here.
Vector Solve(std::vector<Vector> a, Vector b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = column + 1; row < n; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] /= a[row][row];
  }
  return b;
}

double SumOfSquares(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

std::vector<double> FitToPriors(const std::vector<FreeParameter>& parameters,
                                const ResidualsOf& residuals,
                                double* cost_out) {
  constexpr int kSteps = 100;
  constexpr double kDifference = 1e-5;
  const size_t n = parameters.size();
  // Positions are distances from the prior in sigmas.
  const auto values_at = [&](const Vector& x) {
    Vector values(n);
    for (size_t i = 0; i < n; ++i) {
      values[i] = parameters[i].prior * std::exp(parameters[i].sigma * x[i]);
    }
    return values;
  };
  const auto all = [&](const Vector& x) {
    Vector r = residuals(values_at(x));
    r.insert(r.end(), x.begin(), x.end());
    return r;
  };

  Vector x(n);
  for (size_t i = 0; i < n; ++i) x[i] = parameters[i].start;
  Vector r = all(x);
  double cost = SumOfSquares(r);
  double damping = 1e-3;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Vector> jacobian(n);  // by parameter
    for (size_t i = 0; i < n; ++i) {
      Vector above = x;
      Vector below = x;
      above[i] += kDifference;
      below[i] -= kDifference;
      jacobian[i] = all(above);
      const Vector minus = all(below);
      for (size_t k = 0; k < r.size(); ++k) {
        jacobian[i][k] = (jacobian[i][k] - minus[k]) / (2 * kDifference);
      }
    }
    std::vector<Vector> normal(n, Vector(n));
    Vector gradient(n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < r.size(); ++k) {
        gradient[i] -= jacobian[i][k] * r[k];
        for (size_t j = 0; j < n; ++j) {
          normal[i][j] += jacobian[i][k] * jacobian[j][k];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) normal[i][i] *= 1.0 + damping;
    const Vector delta = Solve(std::move(normal), std::move(gradient));
    Vector next = x;
    for (size_t i = 0; i < n; ++i) next[i] += delta[i];
    Vector next_r = all(next);
    const double next_cost = SumOfSquares(next_r);
    if (!(next_cost < cost)) {
      damping *= 10;
      if (damping > 1e12) break;
      continue;
    }
    const bool settled = cost - next_cost <= 1e-12 * cost;
    x = std::move(next);
    r = std::move(next_r);
    cost = next_cost;
    damping = damping / 10;
    if (settled) break;
  }
  if (cost_out != nullptr) *cost_out = cost;
  return values_at(x);
}

}  // namespace trainfare::scenarios
