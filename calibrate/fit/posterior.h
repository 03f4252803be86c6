#pragma once

// What is known after a fit: covariance, which parameters the data determine,
// and what the fit would be without each run.

#include <Eigen/Core>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/problem.h"

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::calibrate {

// A parameter is determined when the data narrow its standard error below this
// share of the prior's. Else it stands at its prior, unless the data are then
// met clearly less well.
inline constexpr double kDeterminedBelow = 0.6;

// Inverse of the Gauss-Newton Hessian of data and prior at `positions`, each
// residual with the weight that the robust loss leaves it. The prior gives it
// full rank.
Eigen::MatrixXd PosteriorCovariance(const FitProblem& problem,
                                    const std::vector<double>& positions);

// Standard error after the data over that before, from 0 to 1.
double NarrowedTo(const FitProblem& problem,
                  const Eigen::MatrixXd& covariance,
                  size_t parameter);

struct Posterior {
  std::vector<double> positions;
  std::vector<bool> held;      // not determined: they stand at their priors
  Eigen::MatrixXd covariance;  // also of what is held, without the hold
};

// The most probable positions, from `start` on, with what the data do not
// determine at its prior; nullopt when the solver does not converge.
std::optional<Posterior> FindPosterior(const FitProblem& problem,
                                       std::vector<double> start,
                                       std::string* message);

// Positions of fits to all groups but one, for each; nullopt where a refit does
// not converge.
//
//   x_B = x + (H - J_B^T V_B J_B)^-1 J_B^T W_B r_B
//   h_B = greatest eigenvalue of W_B^(1/2) J_B A^-1 J_B^T W_B^(1/2)
//
//   H    Hessian of the cost over what is not held, slopes taken as constant
//   J_B  slopes of the residuals r_B of group B
//   W    robust weights psi(r) / r, V slopes psi'(r) of the loss's pull psi, no
//        less than 0; 1 both for squares
//   A    as H, with W for V (Gauss-Newton)
//
// which is the refit itself for linear residuals under squares: what it leaves
// over of the group is (I - h_BB)^-1 r_B, h_BB the group's block of the hat
// matrix. V rather than W, since the others' weights move, too: with W, errors
// of runs left out come out up to 0.8 points too small on the tables that the
// check reads. A group with a leverage h_B above `largest_leverage` is
// refitted: all leverages add up to less than the number of parameters, so that
// few are, and the cost grows with the groups as that of one fit does. Source:
// Cook & Weisberg 1982, Residuals and Influence in Regression, 2.2 and 3.4;
// Huber & Ronchetti 2009, 7.6. Check, against refits: posterior_test.cc, and
// table_test.cc on published rows.
inline constexpr double kLargestLeverage = 0.1;
class GroupsLeftOut {
 public:
  // Both must outlive this.
  GroupsLeftOut(const FitProblem& problem,
                const Posterior& posterior,
                double largest_leverage = kLargestLeverage);
  ~GroupsLeftOut();
  GroupsLeftOut(const GroupsLeftOut&) = delete;
  GroupsLeftOut& operator=(const GroupsLeftOut&) = delete;

  // Without some groups at once, as if they were one; nullopt where a refit
  // does not converge. What is held stays held.
  std::optional<std::vector<double>> PositionsWithout(
      const std::vector<size_t>& groups) const;
  // The posterior's covariance without them, to first order: where it stands
  // with them.
  Eigen::MatrixXd CovarianceWithout(const std::vector<size_t>& groups) const;

 private:
  class Leverage;
  std::unique_ptr<const Leverage> leverage_;
};

std::vector<std::optional<std::vector<double>>> LeaveOutEachGroup(
    const FitProblem& problem,
    const Posterior& posterior,
    double largest_leverage = kLargestLeverage,
    hardware::ProgressLine* progress = nullptr);

}  // namespace trainfare::calibrate
