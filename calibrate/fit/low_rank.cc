#include "calibrate/fit/low_rank.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/error.h"

namespace trainfare::calibrate {

LowRank IncompleteCholesky(Eigen::Index rows, const EntryOf& entry) {
  Eigen::VectorXd left(rows);  // of each row's variance
  for (Eigen::Index i = 0; i < rows; ++i) left[i] = entry(i, i);
  LowRank found;
  Eigen::MatrixXd& factor = found.factor;
  const Eigen::Index most_rank = std::min(rows, kMostRank);
  factor.resize(rows, most_rank);
  Eigen::VectorXd column(rows);
  Eigen::Index rank = 0;
  for (; rank < most_rank; ++rank) {
    Eigen::Index pivot = 0;
    const double most = left.maxCoeff(&pivot);
    if (most <= (rank < kExactRank ? kNothingLeft : kMostLeft)) break;
    for (Eigen::Index i = 0; i < rows; ++i) column[i] = entry(i, pivot);
    column.noalias() -=
        factor.leftCols(rank) * factor.row(pivot).head(rank).transpose();
    column /= std::sqrt(most);
    // Rows that were taken have nothing left, whatever rounding makes of it.
    for (const Eigen::Index taken : found.pivots) column[taken] = 0.0;
    column[pivot] = std::sqrt(most);
    left -= column.cwiseAbs2();
    left[pivot] = 0.0;
    factor.col(rank) = column;
    found.pivots.push_back(pivot);
  }
  factor.conservativeResize(Eigen::NoChange, rank);
  if (rows > 0) found.left = std::max(0.0, left.mean());
  found.gram.setZero(rank, rank);
  found.gram.selfadjointView<Eigen::Lower>().rankUpdate(factor.transpose());
  found.gram.triangularView<Eigen::StrictlyUpper>() = found.gram.transpose();
  return found;
}

LowRankInverse::LowRankInverse(LowRank low_rank, double size, double noise)
    : low_rank_(std::move(low_rank)),
      size_(size * size),
      noise_(noise * noise + size_ * low_rank_.left) {
  Eigen::MatrixXd inner = size_ * low_rank_.gram;
  inner.diagonal().array() += noise_;
  inner_.compute(inner);
  ENSURE(inner_.info() == Eigen::Success, "noise makes the rank full");
  of_pivots_ = low_rank_.factor(low_rank_.pivots, Eigen::all);
}

Eigen::VectorXd LowRankInverse::Solve(const Eigen::VectorXd& y) const {
  const Eigen::MatrixXd& factor = low_rank_.factor;
  return (y - size_ * (factor * inner_.solve(factor.transpose() * y))) / noise_;
}

Eigen::VectorXd LowRankInverse::Diagonal() const {
  const Eigen::MatrixXd turned =
      inner_.matrixL().solve(low_rank_.factor.transpose());
  return (1.0 - size_ * turned.colwise().squaredNorm().transpose().array()) /
         noise_;
}

// With p = L_P^-1 k_x what the pivots tell of the place:
//
//   s^2 (k - p^T p) + m^2 s^2 p^T M^-1 p
//
// two terms that are not below 0, and nothing large that cancels.
double LowRankInverse::VarianceAt(double own,
                                  const Eigen::VectorXd& at_pivots) const {
  const Eigen::VectorXd told =
      of_pivots_.triangularView<Eigen::Lower>().solve(at_pivots);
  const Eigen::VectorXd turned = inner_.matrixL().solve(told);
  return size_ * (std::max(0.0, own - told.squaredNorm()) +
                  noise_ * turned.squaredNorm());
}

}  // namespace trainfare::calibrate
