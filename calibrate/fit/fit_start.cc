#include "calibrate/fit/fit_start.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace trainfare::calibrate {
namespace {

// Scales of the robust loss before outliers are told from a bad start, widest
// first.
constexpr std::array kWiderScales = {16.0, 4.0};

// So many runs show where a solution is.
constexpr size_t kEnoughRuns = 500;

void SetSigmas(const ModelErrors& errors, FitData& data) {
  for (Datum& datum : data.data) datum.sigma = Sigma(datum, errors);
}

// From the priors a sharp loss would take most runs for outliers and stay
// there: what is far off is told by the scatter that a wide one leaves. Moves
// `start` there, and sets the sigmas of the data.
ModelErrors EstimateErrors(const FitProblem& problem,
                           const FitOptions& options,
                           FitData& data,
                           std::vector<double>& start) {
  ModelErrors errors = AssumedErrors(options);
  SetSigmas(errors, data);
  const size_t stride = std::max<size_t>(1, problem.groups() / kEnoughRuns);
  for (const double wider : kWiderScales) {
    std::optional<Solution> solved =
        Solve(problem, start, {.stride = stride, .widened = wider});
    if (!solved) continue;
    start = std::move(solved->positions);
    errors = ErrorsAt(data, start, options);
    SetSigmas(errors, data);
  }
  return errors;
}

FitStart EndFrom(const FitProblem& problem,
                 const FitOptions& options,
                 FitData& data,
                 std::vector<double> start) {
  FitStart end;
  end.errors = EstimateErrors(problem, options, data, start);
  std::optional<Solution> solved = Solve(problem, start);
  end.cost = std::numeric_limits<double>::infinity();
  if (!solved) {
    end.positions = std::move(start);
    return end;
  }
  end.positions = std::move(solved->positions);
  double log_sigmas = 0;
  for (const Datum& datum : data.data) log_sigmas += std::log(datum.sigma);
  end.cost = solved->cost + log_sigmas;
  end.mean_log_sigma = log_sigmas / static_cast<double>(data.data.size());
  return end;
}

// Whether the data depend on a parameter at a point, to first order.
bool HasEffect(const FitProblem& problem,
               const FitProblem::Rows& rows,
               size_t parameter) {
  const size_t count = problem.parameters().size();
  double squares = 0.0;
  for (size_t row = 0; row < problem.residuals(); ++row) {
    const double slope = rows.slopes[row * count + parameter];
    squares += slope * slope;
  }
  const double sigma = problem.parameters()[parameter].prior_sigma;
  return squares * sigma * sigma > kSaysNothing;
}

// The same of any point.
bool HasEffectAt(const FitProblem& problem,
                 const std::vector<double>& positions,
                 size_t parameter) {
  FitProblem::Rows rows;
  return problem.Evaluate(positions, true, rows) &&
         HasEffect(problem, rows, parameter);
}

bool IsClearlyBetter(const FitStart& end, const FitStart& first) {
  return end.cost + kClearOdds < first.cost &&
         end.mean_log_sigma < first.mean_log_sigma + std::log(kClearlyLess);
}

}  // namespace

FitStart FindStart(const FitProblem& problem,
                   const FitOptions& options,
                   FitData& data) {
  FitStart first = EndFrom(problem, options, data, data.prior);
  if (data.runs.size() < kFewestRuns || !std::isfinite(first.cost)) {
    return first;
  }
  FitStart best = first;
  FitProblem::Rows here;
  problem.Evaluate(first.positions, true, here);
  for (size_t i = 0; i < first.positions.size(); ++i) {
    if (HasEffect(problem, here, i)) continue;
    const BoundedParameter& one = problem.parameters()[i];
    for (const double away : {kTriedSigmas, -kTriedSigmas}) {
      std::vector<double> moved = first.positions;
      moved[i] =
          std::clamp(one.prior + away * one.prior_sigma, one.lower, one.upper);
      if (!HasEffectAt(problem, moved, i)) continue;
      FitStart end = EndFrom(problem, options, data, std::move(moved));
      if (end.cost < best.cost && IsClearlyBetter(end, first)) {
        best = std::move(end);
      }
    }
  }
  SetSigmas(best.errors, data);
  return best;
}

}  // namespace trainfare::calibrate
