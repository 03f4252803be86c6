#include "calibrate/fit/problem.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <utility>

#include "calibrate/fit/parallel_for.h"
#include "calibrate/fit/step_model.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

// When every fit stops. The cost is half a sum of squared standard deviations.
constexpr int kMostIterations = 500;
constexpr double kFunctionTolerance = 1e-6;
constexpr double kParameterTolerance = 1e-8;
constexpr double kGradientTolerance = 1e-10;
// Near a bound u moves its position by next to nothing: undamped, a first step
// of thousands there is refused until all others are damped with it. This much
// stands for its curvature at least, where one residual of one standard
// deviation a unit of u has 1; columns are not scaled, so that it says that.
constexpr double kLeastCurvature = 1.0;
// A thread takes longer to start than fewer steps to evaluate.
constexpr size_t kBlocksAThread = 128;

// What the solver moves: an unbounded number u for each parameter, so that a
// bound is approached and never hit. Steps cut at a bound would otherwise stall
// at its edge.
//
//   x = l + (h - l) / (1 + exp(-u))       l, h bounds of the position x
class Bounds {
 public:
  explicit Bounds(const BoundedParameter& parameter)
      : low_(parameter.lower), high_(parameter.upper) {}
  double Position(double u) const {
    return low_ + (high_ - low_) / (1.0 + std::exp(-u));
  }
  double Slope(double u) const {
    const double share = 1.0 / (1.0 + std::exp(-u));
    return (high_ - low_) * share * (1.0 - share);
  }
  double Unbounded(double position) const {
    constexpr double kEdge = 1e-6;  // as close as a start may be to a bound
    const double share =
        std::clamp((position - low_) / (high_ - low_), kEdge, 1.0 - kEdge);
    return std::log(share / (1.0 - share));
  }

 private:
  double low_;
  double high_;
};

// Evaluates every block once at each point that the solver looks at; the cost
// functions only read from here.
class SharedEvaluation : public ceres::EvaluationCallback {
 public:
  SharedEvaluation(const FitProblem& problem,
                   std::vector<double> start,
                   const std::vector<bool>& held,
                   std::vector<size_t> blocks)
      : problem_(problem),
        positions_(std::move(start)),
        blocks_(std::move(blocks)) {
    for (size_t i = 0; i < positions_.size(); ++i) {
      if (!held.empty() && held[i]) continue;
      free_.push_back(i);
      bounds_.emplace_back(problem.parameters()[i]);
      unbounded_.push_back(bounds_.back().Unbounded(positions_[i]));
    }
    slopes_.resize(free_.size());
  }

  void PrepareForEvaluation(bool evaluate_jacobians,
                            bool new_evaluation_point) override {
    if (!evaluate_jacobians && !new_evaluation_point) return;
    for (size_t k = 0; k < free_.size(); ++k) {
      positions_[free_[k]] = bounds_[k].Position(unbounded_[k]);
      slopes_[k] = bounds_[k].Slope(unbounded_[k]);
    }
    finite_ = problem_.Evaluate(positions_, evaluate_jacobians, blocks_, rows_);
  }

  // One residual and its slopes over what the solver moves: the chain rule,
  // here alone.
  bool ResidualAt(size_t row, double* residual, double* jacobian) const {
    *residual = rows_.residuals[row];
    const size_t count = positions_.size();
    for (size_t k = 0; jacobian != nullptr && k < free_.size(); ++k) {
      jacobian[k] = rows_.slopes[row * count + free_[k]] * slopes_[k];
    }
    return finite_;
  }
  void PriorAt(double* residuals, double* jacobian) const {
    for (size_t k = 0; k < free_.size(); ++k) {
      const BoundedParameter& one = problem_.parameters()[free_[k]];
      residuals[k] = (positions_[free_[k]] - one.prior) / one.prior_sigma;
      for (size_t j = 0; jacobian != nullptr && j < free_.size(); ++j) {
        jacobian[k * free_.size() + j] =
            j == k ? slopes_[k] / one.prior_sigma : 0.0;
      }
    }
  }

  int free_count() const { return static_cast<int>(free_.size()); }
  double* unbounded() { return unbounded_.data(); }
  const std::vector<double>& positions() const { return positions_; }

 private:
  const FitProblem& problem_;
  std::vector<double> positions_;
  std::vector<size_t> blocks_;  // that are evaluated
  std::vector<size_t> free_;    // parameters that move
  std::vector<Bounds> bounds_;
  std::vector<double> unbounded_;
  std::vector<double> slopes_;  // of the positions over what the solver moves
  FitProblem::Rows rows_;
  bool finite_ = true;
};

class RowCost : public ceres::CostFunction {
 public:
  RowCost(const SharedEvaluation& evaluation, size_t row)
      : evaluation_(evaluation), row_(row) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(evaluation.free_count());
  }
  bool Evaluate(double const* const* /*unbounded*/,
                double* residual,
                double** jacobians) const override {
    return evaluation_.ResidualAt(
        row_, residual, jacobians == nullptr ? nullptr : jacobians[0]);
  }

 private:
  const SharedEvaluation& evaluation_;
  size_t row_;
};

class PriorCost : public ceres::CostFunction {
 public:
  explicit PriorCost(const SharedEvaluation& evaluation)
      : evaluation_(evaluation) {
    set_num_residuals(evaluation.free_count());
    mutable_parameter_block_sizes()->push_back(evaluation.free_count());
  }
  bool Evaluate(double const* const* /*unbounded*/,
                double* residuals,
                double** jacobians) const override {
    evaluation_.PriorAt(residuals,
                        jacobians == nullptr ? nullptr : jacobians[0]);
    return true;
  }

 private:
  const SharedEvaluation& evaluation_;
};

class DifferenceBlock : public ResidualBlock {
 public:
  DifferenceBlock(size_t residuals,
                  size_t parameters,
                  ResidualFunction function)
      : residuals_(residuals),
        parameters_(parameters),
        function_(std::move(function)),
        cost_(this, ceres::DO_NOT_TAKE_OWNERSHIP) {
    cost_.AddParameterBlock(static_cast<int>(parameters));
    cost_.SetNumResiduals(static_cast<int>(residuals));
  }
  DifferenceBlock(const DifferenceBlock&) = delete;
  DifferenceBlock& operator=(const DifferenceBlock&) = delete;

  size_t size() const override { return residuals_; }
  bool Evaluate(std::span<const double> positions,
                std::span<double> residuals,
                std::span<double> slopes) const override {
    const double* at[] = {positions.data()};
    double* jacobian[] = {slopes.data()};
    return cost_.Evaluate(
               at, residuals.data(), slopes.empty() ? nullptr : jacobian) &&
           std::all_of(residuals.begin(), residuals.end(), [](double value) {
             return std::isfinite(value);
           });
  }
  bool operator()(double const* const* positions, double* residuals) const {
    function_(std::span(positions[0], parameters_),
              std::span(residuals, residuals_));
    return true;
  }

 private:
  size_t residuals_;
  size_t parameters_;
  ResidualFunction function_;
  ceres::DynamicNumericDiffCostFunction<DifferenceBlock, ceres::CENTRAL> cost_;
};

// By group, whether the solution is fitted to it.
std::vector<bool> KeptGroups(const FitProblem& problem,
                             const SolveOptions& options) {
  std::vector<bool> kept(problem.groups(), options.stride == 1);
  for (size_t group = 0; group < kept.size(); group += options.stride) {
    kept[group] = true;
  }
  for (const size_t group : options.without_groups) kept[group] = false;
  return kept;
}

// Where nothing moves. Priors that are held cost nothing.
double CostOf(const FitProblem& problem,
              const SolveOptions& options,
              const std::vector<bool>& kept,
              const std::vector<double>& positions) {
  FitProblem::Rows rows;
  problem.Evaluate(positions, false, rows);
  const double scale = problem.robust_scale() * options.widened;
  double cost = 0.0;
  for (size_t row = 0; row < problem.residuals(); ++row) {
    if (!kept[problem.group_of(row)]) continue;
    const double square = rows.residuals[row] * rows.residuals[row];
    cost += 0.5 * (scale == 0.0
                       ? square
                       : scale * scale * std::log1p(square / (scale * scale)));
  }
  return cost;
}

}  // namespace

BoundedParameter Bounded(const hardware::ParameterInfo& info) {
  return {ToFitScale(info, info.prior),
          info.prior_sigma,
          ToFitScale(info, info.lower),
          ToFitScale(info, info.upper)};
}

std::unique_ptr<ResidualBlock> ByDifferences(size_t residuals,
                                             size_t parameters,
                                             ResidualFunction function) {
  return std::make_unique<DifferenceBlock>(
      residuals, parameters, std::move(function));
}

FitProblem::FitProblem(std::vector<BoundedParameter> parameters,
                       double robust_scale)
    : parameters_(std::move(parameters)), robust_scale_(robust_scale) {
  for (const BoundedParameter& one : parameters_) {
    ENSURE(std::isfinite(one.lower) && std::isfinite(one.upper) &&
               one.lower < one.upper,
           "every parameter is bounded");
  }
}

void FitProblem::Add(std::unique_ptr<ResidualBlock> block,
                     const std::vector<size_t>& groups) {
  ENSURE(groups.size() == block->size(), "one group a residual");
  for (const size_t group : groups) {
    groups_ = std::max(groups_, group + 1);
    group_of_.push_back(group);
  }
  first_row_.push_back(group_of_.size() - block->size());
  blocks_.push_back(std::move(block));
}

void FitProblem::Add(std::unique_ptr<ResidualBlock> block) {
  const std::vector<size_t> groups(block->size(), groups_);
  Add(std::move(block), groups);
}

std::vector<size_t> FitProblem::BlocksOf(const std::vector<bool>& kept) const {
  std::vector<size_t> blocks;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto first =
        group_of_.begin() + static_cast<ptrdiff_t>(first_row_[i]);
    if (std::any_of(first,
                    first + static_cast<ptrdiff_t>(blocks_[i]->size()),
                    [&](size_t group) { return kept[group]; })) {
      blocks.push_back(i);
    }
  }
  return blocks;
}

bool FitProblem::Evaluate(std::span<const double> positions,
                          bool with_slopes,
                          Rows& rows) const {
  return Evaluate(
      positions, with_slopes, BlocksOf(std::vector<bool>(groups_, true)), rows);
}

bool FitProblem::Evaluate(std::span<const double> positions,
                          bool with_slopes,
                          const std::vector<size_t>& blocks,
                          Rows& rows) const {
  const size_t count = parameters_.size();
  rows.residuals.assign(residuals(), 0.0);
  rows.slopes.assign(with_slopes ? residuals() * count : 0, 0.0);
  const auto evaluate = [&](size_t first, size_t last) {
    bool finite = true;
    for (size_t i = first; i < last; ++i) {
      const ResidualBlock& block = *blocks_[blocks[i]];
      const size_t row = first_row_[blocks[i]];
      std::span<double> slopes;
      if (with_slopes) {
        slopes =
            std::span(rows.slopes).subspan(row * count, block.size() * count);
      }
      finite &=
          block.Evaluate(positions,
                         std::span(rows.residuals).subspan(row, block.size()),
                         slopes);
    }
    return finite;
  };
  const size_t parts = blocks.size() / kBlocksAThread;
  if (parts < 2) return evaluate(0, blocks.size());
  std::atomic<bool> finite = true;
  ParallelFor(parts, [&](size_t part) {
    const size_t last =
        part + 1 == parts ? blocks.size() : (part + 1) * kBlocksAThread;
    if (!evaluate(part * kBlocksAThread, last)) finite = false;
  });
  return finite;
}

double FitProblem::Weight(double residual) const {
  if (robust_scale_ == 0.0) return 1.0;
  const double scaled = residual / robust_scale_;
  return 1.0 / (1.0 + scaled * scaled);
}

double FitProblem::Curvature(double residual) const {
  const double weight = Weight(residual);
  return std::max(0.0, (2.0 * weight - 1.0) * weight);
}

std::optional<Solution> Solve(const FitProblem& problem,
                              std::vector<double> start,
                              const SolveOptions& options,
                              std::string* message) {
  const std::vector<bool> kept = KeptGroups(problem, options);
  SharedEvaluation evaluation(
      problem, std::move(start), options.held, problem.BlocksOf(kept));
  if (evaluation.free_count() == 0) {
    return Solution{evaluation.positions(),
                    CostOf(problem, options, kept, evaluation.positions())};
  }
  // Ours outlive the problem, which owns nothing.
  std::deque<RowCost> rows;
  PriorCost prior(evaluation);
  std::optional<ceres::CauchyLoss> loss;
  if (problem.robust_scale() > 0.0) {
    loss.emplace(problem.robust_scale() * options.widened);
  }
  ceres::Problem::Options unowned;
  unowned.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  unowned.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  unowned.evaluation_callback = &evaluation;
  ceres::Problem solved(unowned);
  solved.AddResidualBlock(&prior, nullptr, evaluation.unbounded());
  for (size_t row = 0; row < problem.residuals(); ++row) {
    if (!kept[problem.group_of(row)]) continue;
    solved.AddResidualBlock(&rows.emplace_back(evaluation, row),
                            loss ? &*loss : nullptr,
                            evaluation.unbounded());
  }
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.logging_type = ceres::SILENT;
  solver.jacobi_scaling = false;
  solver.min_lm_diagonal = kLeastCurvature;
  solver.num_threads = 1;
  solver.max_num_iterations = kMostIterations;
  solver.function_tolerance = kFunctionTolerance;
  solver.parameter_tolerance = kParameterTolerance;
  solver.gradient_tolerance = kGradientTolerance;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &solved, &summary);
  // IsSolutionUsable() would also take NO_CONVERGENCE.
  if (summary.termination_type != ceres::CONVERGENCE) {
    if (message != nullptr) *message = summary.message;
    return std::nullopt;
  }
  evaluation.PrepareForEvaluation(false, true);
  return Solution{evaluation.positions(), summary.final_cost};
}

std::vector<double> PriorPositions(const FitProblem& problem) {
  std::vector<double> positions;
  for (const BoundedParameter& one : problem.parameters()) {
    positions.push_back(one.prior);
  }
  return positions;
}

}  // namespace trainfare::calibrate
