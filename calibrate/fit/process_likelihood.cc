#include "calibrate/fit/process_likelihood.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>

namespace trainfare::calibrate {

ProcessLikelihood::ProcessLikelihood(const LowRank& correlation,
                                     const Eigen::VectorXd& values)
    : squares_(values.squaredNorm()),
      others_(static_cast<double>(correlation.rows() - correlation.rank())),
      left_(correlation.left) {
  const Eigen::Tridiagonalization<Eigen::MatrixXd> turned(correlation.gram);
  diagonal_ = turned.diagonal();
  below_ = turned.subDiagonal();
  values_ =
      turned.matrixQ().adjoint() * (correlation.factor.transpose() * values);
}

double ProcessLikelihood::LogAt(double size, double noise) const {
  const double variance = size * size;
  const double of_noise = noise * noise + variance * left_;
  double explained = 0;
  double log_determinant = others_ * std::log(of_noise);
  double pivot = 0;
  double value = 0;
  for (Eigen::Index i = 0; i < diagonal_.size(); ++i) {
    const double below = i == 0 ? 0.0 : variance * below_[i - 1];
    const double factor = i == 0 ? 0.0 : below / pivot;
    value = values_[i] - factor * value;
    pivot = variance * diagonal_[i] + of_noise - factor * below;
    if (!(pivot > 0.0)) return -std::numeric_limits<double>::infinity();
    explained += value * value / pivot;
    log_determinant += std::log(pivot);
  }
  return -0.5 *
         ((squares_ - variance * explained) / of_noise + log_determinant);
}

}  // namespace trainfare::calibrate
