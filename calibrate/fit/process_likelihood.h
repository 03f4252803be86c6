#pragma once

// How likely values are by a Gaussian process of many sizes and noises.
//
//   log N(y; 0, s^2 K + n^2 I) = -(y^T A^-1 y + log det A) / 2 + a constant
//
// K is given as L L^T + e I (low_rank.h), with M = s^2 L^T L + m^2 I and
// m^2 = n^2 + s^2 e:
//
//   y^T A^-1 y = (y^T y - s^2 (L^T y)^T M^-1 (L^T y)) / m^2
//
// L^T L is made tridiagonal once, by a turn that leaves I as it is, so that
// each pair of s and n then takes one pass over its rows instead of a factor of
// its own. Source: Rasmussen & Williams 2006, equations 2.30, A.9 and A.10;
// Golub & Van Loan 2013, section 8.3.1. Check:
// tests/calibrate/fit/discrepancy_test.cc, low_rank_test.cc.

#include <Eigen/Core>

#include "calibrate/fit/low_rank.h"

namespace trainfare::calibrate {

class ProcessLikelihood {
 public:
  // K; y (n).
  ProcessLikelihood(const LowRank& correlation, const Eigen::VectorXd& values);

  // Without the constant; -infinity where the matrix is not positive. The noise
  // is above 0.
  double LogAt(double size, double noise) const;

 private:
  Eigen::VectorXd diagonal_;  // of L^T L turned
  Eigen::VectorXd below_;
  Eigen::VectorXd values_;  // L^T y turned
  double squares_ = 0;      // y^T y
  double others_ = 0;       // rows more than ranks
  double left_ = 0;         // e
};

}  // namespace trainfare::calibrate
