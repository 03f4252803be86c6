#include "calibrate/fit/process_likelihood.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>

namespace trainfare::calibrate {

ProcessLikelihood::ProcessLikelihood(const Eigen::MatrixXd& correlation,
                                     const Eigen::VectorXd& values) {
  const Eigen::Tridiagonalization<Eigen::MatrixXd> turned(correlation);
  diagonal_ = turned.diagonal();
  below_ = turned.subDiagonal();
  values_ = turned.matrixQ().adjoint() * values;
}

double ProcessLikelihood::LogAt(double size, double noise) const {
  const double variance = size * size;
  double twice = 0;
  double pivot = 0;
  double value = 0;
  for (Eigen::Index i = 0; i < diagonal_.size(); ++i) {
    const double below = i == 0 ? 0.0 : variance * below_[i - 1];
    const double factor = i == 0 ? 0.0 : below / pivot;
    value = values_[i] - factor * value;
    pivot = variance * diagonal_[i] + noise * noise - factor * below;
    if (!(pivot > 0.0)) return -std::numeric_limits<double>::infinity();
    twice += value * value / pivot + std::log(pivot);
  }
  return -0.5 * twice;
}

}  // namespace trainfare::calibrate
