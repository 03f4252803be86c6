#pragma once

// A covariance of many places as that of few: K ~ L L^T + e I.
//
//   K    (n, n), symmetric, no eigenvalue below 0
//   L    (n, r): Cholesky's factor, the row with the most variance left taken
//        next, until none has more than a tolerance left or there are kMostRank
//   e    mean of the variance that L L^T leaves of the rows
//   A    s^2 L L^T + m^2 I         m^2 = n^2 + s^2 e, n the noise
//   M    s^2 L^T L + m^2 I, of (r, r)
//
//   A^-1 = (I - s^2 L M^-1 L^T) / m^2
//   log det A = log det M + (n - r) log m^2
//
// so that n places cost n r^2: up to kExactRank of them are exact, and many more
// cost as they are. What varies between the places that were taken, where so
// many stand close to each other, is noise (the projected process with its
// trace). Source: Harbrecht, Peters & Schneider 2012, On the low-rank
// approximation by the pivoted Cholesky decomposition; Rasmussen & Williams
// 2006, A.9, 8.1 and 8.3.4; Quinonero-Candela & Rasmussen 2005. Check:
// tests/calibrate/fit/low_rank_test.cc.

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <functional>
#include <vector>

namespace trainfare::calibrate {

// So many columns cost next to nothing: with fewer L L^T is K to its digits.
inline constexpr Eigen::Index kExactRank = 256;
inline constexpr double kNothingLeft = 1e-12;
// Beyond them, the most columns, and the variance that any row may have left,
// where the variances of K are near 1.
inline constexpr Eigen::Index kMostRank = 512;
inline constexpr double kMostLeft = 1e-6;

struct LowRank {
  Eigen::MatrixXd factor;            // L
  Eigen::MatrixXd gram;              // L^T L
  std::vector<Eigen::Index> pivots;  // rows in the order in which L took them
  double left = 0;                   // e

  Eigen::Index rows() const { return factor.rows(); }
  Eigen::Index rank() const { return factor.cols(); }
};

// One entry of K.
using EntryOf = std::function<double(Eigen::Index row, Eigen::Index column)>;
LowRank IncompleteCholesky(Eigen::Index rows, const EntryOf& entry);

// A^-1; s, and n above 0.
class LowRankInverse {
 public:
  LowRankInverse() = default;
  LowRankInverse(LowRank low_rank, double size, double noise);

  const std::vector<Eigen::Index>& pivots() const { return low_rank_.pivots; }
  // A^-1 y, and the diagonal of A^-1.
  Eigen::VectorXd Solve(const Eigen::VectorXd& y) const;
  Eigen::VectorXd Diagonal() const;
  // s^2 (k - k_x^T (K + m^2 / s^2 I)^-1 k_x): the variance at another place,
  // whose own entry of K is `own` = k and those with the pivots `at_pivots`.
  double VarianceAt(double own, const Eigen::VectorXd& at_pivots) const;

 private:
  LowRank low_rank_;
  double size_ = 0;                    // s^2
  double noise_ = 1;                   // m^2
  Eigen::LLT<Eigen::MatrixXd> inner_;  // of M
  Eigen::MatrixXd of_pivots_;          // rows of L at the pivots, triangular
};

}  // namespace trainfare::calibrate
