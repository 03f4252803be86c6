#pragma once

// The one way in which anything is fitted here: least squares over bounded
// parameters with priors, solved by Ceres.
//
//   cost(x) = sum_i rho(r_i(x)^2) / 2 + sum_j ((x_j - prior_j) / sigma_j)^2 / 2
//
//   x    positions: the parameters in the scale of the fit (their logs, or
//        themselves), each between its bounds
//   r_i  residuals in their own standard deviations
//   rho  Cauchy's loss c^2 log(1 + s / c^2) with the robust scale c, or s
//
// Steps, engines, ranks, rings and powers are residuals of it (fit_data.cc,
// engine_figures.cc, rank_fit.cc, ring_fit.cc, power.cc). What several devices
// share and what is each one's own are parameters alike: a block of residuals
// has slopes over those it depends on.
// Source: Gelman et al. 2013, Bayesian Data Analysis, 4.1; Huber & Ronchetti
// 2009, 7.8. Check: tests/calibrate/fit/problem_test.cc.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hardware/catalog/parameter.h"

namespace trainfare::calibrate {

// In the scale of the fit.
struct BoundedParameter {
  double prior = 0;
  double prior_sigma = 1;
  double lower = -1;
  double upper = 1;
};
BoundedParameter Bounded(const hardware::ParameterInfo& info);

// Residuals that one evaluation gives.
class ResidualBlock {
 public:
  virtual ~ResidualBlock() = default;
  virtual size_t size() const = 0;
  // `slopes`, where there are any: size() rows of one derivative a parameter,
  // 0 from the start. False where a residual is not finite.
  // Blocks of a problem are evaluated side by side.
  virtual bool Evaluate(std::span<const double> positions,
                        std::span<double> residuals,
                        std::span<double> slopes) const = 0;
};

// A function without derivatives as a block, by central differences. It fills
// the residuals at the positions.
using ResidualFunction =
    std::function<void(std::span<const double>, std::span<double>)>;
std::unique_ptr<ResidualBlock> ByDifferences(size_t residuals,
                                             size_t parameters,
                                             ResidualFunction function);

class FitProblem {
 public:
  // `robust_scale` 0: plain squares.
  FitProblem(std::vector<BoundedParameter> parameters, double robust_scale);

  // `groups`: which run each residual is of; runs are left out as a whole.
  void Add(std::unique_ptr<ResidualBlock> block,
           const std::vector<size_t>& groups);
  // As one group of its own.
  void Add(std::unique_ptr<ResidualBlock> block);

  const std::vector<BoundedParameter>& parameters() const {
    return parameters_;
  }
  double robust_scale() const { return robust_scale_; }
  size_t groups() const { return groups_; }
  size_t residuals() const { return group_of_.size(); }
  size_t group_of(size_t residual) const { return group_of_[residual]; }

  // All residuals at a point, and their slopes where asked for: a row a
  // residual, a column a parameter. False where one is not finite.
  struct Rows {
    std::vector<double> residuals;
    std::vector<double> slopes;
  };
  bool Evaluate(std::span<const double> positions,
                bool with_slopes,
                Rows& rows) const;
  // Of some blocks alone; the rows of others are 0.
  bool Evaluate(std::span<const double> positions,
                bool with_slopes,
                const std::vector<size_t>& blocks,
                Rows& rows) const;
  // Blocks with a residual of some group that is kept, by group.
  std::vector<size_t> BlocksOf(const std::vector<bool>& kept) const;
  // How much of a residual the loss lets count, from 0 to 1.
  double Weight(double residual) const;
  // Second derivative of half the loss over the residual, 1 for squares; 0
  // past the bend of the loss, where it is negative.
  double Curvature(double residual) const;

 private:
  std::vector<BoundedParameter> parameters_;
  double robust_scale_;
  std::vector<std::unique_ptr<ResidualBlock>> blocks_;
  std::vector<size_t> first_row_;  // of each block
  std::vector<size_t> group_of_;
  size_t groups_ = 0;
};

struct Solution {
  std::vector<double> positions;
  double cost = 0;  // minus the log of the probability of data and priors
};

struct SolveOptions {
  std::vector<bool> held = {};  // stay where they start; empty: none
  std::vector<size_t> without_groups = {};  // fitted to the others
  // Fitted to one of so many groups: where there are many, near the solution.
  size_t stride = 1;
  // The problem's robust scale times this.
  double widened = 1.0;
};

// The most probable positions from `start` on; nullopt when the solver did not
// converge, `message` then says what it said.
std::optional<Solution> Solve(const FitProblem& problem,
                              std::vector<double> start,
                              const SolveOptions& options = {},
                              std::string* message = nullptr);

// Where the priors stand.
std::vector<double> PriorPositions(const FitProblem& problem);

}  // namespace trainfare::calibrate
