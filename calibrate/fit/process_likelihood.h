#pragma once

// How likely values are by a Gaussian process of many sizes and noises.
//
//   log N(y; 0, s^2 K + n^2 I) = -(y^T A^-1 y + log det A) / 2 + a constant
//
// K is made tridiagonal once, by a turn that leaves I as it is, so that each
// pair of s and n then takes one pass over the rows instead of a factor of its
// own. Source: Rasmussen & Williams 2006, equation 2.30; Golub & Van Loan 2013,
// section 8.3.1. Check: tests/calibrate/fit/discrepancy_test.cc.

#include <Eigen/Core>

namespace trainfare::calibrate {

class ProcessLikelihood {
 public:
  // K (n, n), symmetric; y (n).
  ProcessLikelihood(const Eigen::MatrixXd& correlation,
                    const Eigen::VectorXd& values);

  // Without the constant; -infinity where the matrix is not positive.
  double LogAt(double size, double noise) const;

 private:
  Eigen::VectorXd diagonal_;  // of K turned
  Eigen::VectorXd below_;
  Eigen::VectorXd values_;  // y turned
};

}  // namespace trainfare::calibrate
