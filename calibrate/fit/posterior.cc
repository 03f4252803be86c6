#include "calibrate/fit/posterior.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/fit/parallel_for.h"
#include "hardware/files/progress_line.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

// Parameters stand at their priors while that costs less than this in the log
// of the probability: what one standard deviation of one parameter costs.
constexpr double kIndifferentCost = 0.5;

using Matrix = Eigen::MatrixXd;
using RowMajor =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index At(size_t i) { return static_cast<Eigen::Index>(i); }

// Residuals and slopes at a point with the weights of the loss.
struct Linearised {
  Eigen::VectorXd residuals;
  RowMajor slopes;
  Eigen::VectorXd weights;
  Matrix information;  // Gauss-Newton Hessian of data and priors
};

Linearised Linearise(const FitProblem& problem,
                     const std::vector<double>& positions) {
  FitProblem::Rows rows;
  problem.Evaluate(positions, true, rows);
  const auto count = At(problem.parameters().size());
  const auto size = At(problem.residuals());
  Linearised at;
  at.residuals = Eigen::Map<Eigen::VectorXd>(rows.residuals.data(), size);
  at.slopes = Eigen::Map<RowMajor>(rows.slopes.data(), size, count);
  at.weights.resize(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    at.weights[i] = problem.Weight(at.residuals[i]);
  }
  at.information = Matrix::Zero(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const double sigma =
        problem.parameters()[static_cast<size_t>(i)].prior_sigma;
    at.information(i, i) = 1.0 / (sigma * sigma);
  }
  at.information.noalias() +=
      at.slopes.transpose() * at.weights.asDiagonal() * at.slopes;
  return at;
}

Matrix Inverse(const Matrix& information) {
  const Eigen::LLT<Matrix> factor(information);
  ENSURE(factor.info() == Eigen::Success, "priors make the rank full");
  return factor.solve(Matrix::Identity(information.rows(), information.cols()));
}

// The next parameter that the data narrow least, if they do not determine it.
std::optional<size_t> LeastDetermined(const FitProblem& problem,
                                      const Posterior& posterior,
                                      const std::vector<bool>& kept) {
  std::optional<size_t> widest;
  double least_narrowed = kDeterminedBelow;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (posterior.held[i] || kept[i]) continue;
    const double narrowed = NarrowedTo(problem, posterior.covariance, i);
    if (narrowed >= least_narrowed) {
      least_narrowed = narrowed;
      widest = i;
    }
  }
  return widest;
}

// Whether the data say nothing of a parameter: it is at its prior, as wide.
bool IsUntouched(const FitProblem& problem,
                 const Posterior& posterior,
                 size_t parameter) {
  constexpr double kRounding = 1e-9;
  const BoundedParameter& one = problem.parameters()[parameter];
  return NarrowedTo(problem, posterior.covariance, parameter) >=
             1.0 - kRounding &&
         std::abs(posterior.positions[parameter] - one.prior) <=
             kRounding * one.prior_sigma;
}

}  // namespace

Eigen::MatrixXd PosteriorCovariance(const FitProblem& problem,
                                    const std::vector<double>& positions) {
  return Inverse(Linearise(problem, positions).information);
}

double NarrowedTo(const FitProblem& problem,
                  const Eigen::MatrixXd& covariance,
                  size_t parameter) {
  return std::sqrt(covariance(At(parameter), At(parameter))) /
         problem.parameters()[parameter].prior_sigma;
}

std::optional<Posterior> FindPosterior(const FitProblem& problem,
                                       std::vector<double> start,
                                       std::string* message) {
  const size_t count = problem.parameters().size();
  std::optional<Solution> best = Solve(problem, std::move(start), {}, message);
  if (!best) return std::nullopt;
  Posterior posterior;
  posterior.held.assign(count, false);
  posterior.positions = std::move(best->positions);
  posterior.covariance = PosteriorCovariance(problem, posterior.positions);
  // What the data say nothing of holds nothing else, so that it takes no fit.
  for (size_t i = 0; i < count; ++i) {
    posterior.held[i] = IsUntouched(problem, posterior, i);
    if (posterior.held[i]) {
      posterior.positions[i] = problem.parameters()[i].prior;
    }
  }
  // Others one at a time, the least determined first: two that only their
  // product is known of must not both go back to their priors. Nor does one
  // that the data want elsewhere, however little they say of where: the others
  // would make up for it with values that mean nothing.
  const double allowed_cost = best->cost + kIndifferentCost;
  std::vector<bool> kept(count, false);
  while (const auto widest = LeastDetermined(problem, posterior, kept)) {
    posterior.held[*widest] = true;
    std::vector<double> from = posterior.positions;
    from[*widest] = problem.parameters()[*widest].prior;
    std::optional<Solution> without =
        Solve(problem, std::move(from), {.held = posterior.held}, message);
    if (!without) return std::nullopt;
    if (without->cost > allowed_cost) {
      posterior.held[*widest] = false;
      kept[*widest] = true;
      continue;
    }
    posterior.positions = std::move(without->positions);
    posterior.covariance = PosteriorCovariance(problem, posterior.positions);
  }
  return posterior;
}

// What the posterior moves to without a group, by its leverage.
class GroupsLeftOut::Leverage {
 public:
  Leverage(const FitProblem& problem,
           const Posterior& posterior,
           double largest)
      : problem_(problem),
        posterior_(posterior),
        largest_(largest),
        rows_of_(problem.groups()) {
    for (size_t i = 0; i < posterior.held.size(); ++i) {
      if (!posterior.held[i]) free_.push_back(At(i));
    }
    Linearised at = Linearise(problem, posterior.positions);
    slopes_ = at.slopes(Eigen::all, free_);
    weights_ = at.weights;
    pulls_ = at.weights.cwiseProduct(at.residuals);
    curvatures_.resize(pulls_.size());
    for (Eigen::Index i = 0; i < curvatures_.size(); ++i) {
      curvatures_[i] = problem.Curvature(at.residuals[i]);
    }
    information_ = at.information(free_, free_);
    hessian_ = information_ + slopes_.transpose() *
                                  (curvatures_ - weights_).asDiagonal() *
                                  slopes_;
    if (!free_.empty()) inverse_ = Inverse(information_);
    all_slopes_ = std::move(at.slopes);
    all_information_ = std::move(at.information);
    for (size_t row = 0; row < problem.residuals(); ++row) {
      rows_of_[problem.group_of(row)].push_back(At(row));
    }
  }

  // nullopt where their leverage is too large for that.
  std::optional<std::vector<double>> Without(
      const std::vector<size_t>& groups) const {
    const std::vector<Eigen::Index> rows = RowsOf(groups);
    if (rows.empty() || free_.empty()) return posterior_.positions;
    if (LeverageOf(slopes_(rows, Eigen::all), weights_(rows)) > largest_) {
      return std::nullopt;
    }
    return OneStep(rows);
  }

  std::optional<std::vector<double>> Refit(
      const std::vector<size_t>& groups) const {
    const auto near = OneStep(RowsOf(groups));
    std::optional<Solution> refit =
        Solve(problem_,
              near.value_or(posterior_.positions),
              {.held = posterior_.held, .without_groups = groups});
    if (!refit) return std::nullopt;
    return std::move(refit->positions);
  }

  Matrix CovarianceWithout(const std::vector<size_t>& groups) const {
    const std::vector<Eigen::Index> rows = RowsOf(groups);
    const Matrix slopes = all_slopes_(rows, Eigen::all);
    return Inverse(all_information_ -
                   slopes.transpose() * weights_(rows).asDiagonal() * slopes);
  }

 private:
  // x_B; nullopt where there is no minimum near.
  std::optional<std::vector<double>> OneStep(
      const std::vector<Eigen::Index>& rows) const {
    const Matrix slopes = slopes_(rows, Eigen::all);
    const Matrix others =
        hessian_ - slopes.transpose() * curvatures_(rows).asDiagonal() * slopes;
    // Residuals far out pull less the farther they are: without a group that
    // holds them there may be no minimum here.
    const Eigen::LLT<Matrix> factor(others);
    if (factor.info() != Eigen::Success) return std::nullopt;
    const Eigen::VectorXd moved =
        factor.solve(slopes.transpose() * pulls_(rows));
    std::vector<double> positions = posterior_.positions;
    for (size_t k = 0; k < free_.size(); ++k) {
      const auto i = static_cast<size_t>(free_[k]);
      const BoundedParameter& one = problem_.parameters()[i];
      positions[i] =
          std::clamp(positions[i] + moved[At(k)], one.lower, one.upper);
    }
    return positions;
  }

  std::vector<Eigen::Index> RowsOf(const std::vector<size_t>& groups) const {
    std::vector<Eigen::Index> rows;
    for (const size_t group : groups) {
      rows.insert(rows.end(), rows_of_[group].begin(), rows_of_[group].end());
    }
    return rows;
  }

  double LeverageOf(const Matrix& slopes,
                    const Eigen::VectorXd& weights) const {
    const Matrix scaled = weights.cwiseSqrt().asDiagonal() * slopes;
    return Eigen::SelfAdjointEigenSolver<Matrix>(
               scaled * inverse_ * scaled.transpose(), Eigen::EigenvaluesOnly)
        .eigenvalues()
        .maxCoeff();
  }

  const FitProblem& problem_;
  const Posterior& posterior_;
  double largest_;
  std::vector<std::vector<Eigen::Index>> rows_of_;  // by group
  std::vector<Eigen::Index> free_;                  // parameters not held
  RowMajor all_slopes_;
  Matrix all_information_;
  Matrix slopes_;  // over what is free
  Eigen::VectorXd weights_;
  Eigen::VectorXd pulls_;  // residuals by their weights
  Eigen::VectorXd curvatures_;
  Matrix information_;  // Gauss-Newton, over what is free
  Matrix inverse_;      // of it
  Matrix hessian_;
};

GroupsLeftOut::GroupsLeftOut(const FitProblem& problem,
                             const Posterior& posterior,
                             double largest_leverage)
    : leverage_(std::make_unique<const Leverage>(
          problem, posterior, largest_leverage)) {}
GroupsLeftOut::~GroupsLeftOut() = default;

std::optional<std::vector<double>> GroupsLeftOut::PositionsWithout(
    const std::vector<size_t>& groups) const {
  auto positions = leverage_->Without(groups);
  return positions ? positions : leverage_->Refit(groups);
}

Eigen::MatrixXd GroupsLeftOut::CovarianceWithout(
    const std::vector<size_t>& groups) const {
  return leverage_->CovarianceWithout(groups);
}

std::vector<std::optional<std::vector<double>>> LeaveOutEachGroup(
    const FitProblem& problem,
    const Posterior& posterior,
    double largest_leverage,
    hardware::ProgressLine* progress) {
  const GroupsLeftOut left_out(problem, posterior, largest_leverage);
  std::vector<std::optional<std::vector<double>>> positions(problem.groups());
  const auto leave_out = [&](size_t group) {
    positions[group] = left_out.PositionsWithout({group});
  };
  if (progress != nullptr) {
    progress->Begin(static_cast<double>(positions.size()), "runs left out");
  }
  ParallelFor(positions.size(), leave_out, progress);
  return positions;
}

}  // namespace trainfare::calibrate
