#include "calibrate/fit/ring_fit.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/problem.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// Positions of the fit: latency and time a byte in units that no all-reduce
// lets them pass by much, so that both are near 1 or below.
enum Position : size_t { kLatency, kInverseLink };

struct Units {
  double latency = std::numeric_limits<double>::infinity();  // s
  double inverse = std::numeric_limits<double>::infinity();  // s/B
};

// Throws where the times do not tell latency from bandwidth: the bytes of one
// message are the same for all.
Units UnitsOf(const std::vector<TimedAllReduce>& times) {
  constexpr double kSameSize = 1.0001;
  Units units;
  double least = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const TimedAllReduce& one : times) {
    if (one.ranks < 2 || !(one.time.base() > 0) || !(one.size.base() > 0)) {
      throw InputError(
          "all-reduces: expected two ranks and more, positive sizes and times");
    }
    const auto ranks = static_cast<double>(one.ranks);
    const double messages = 2.0 * (ranks - 1.0);
    const double message = one.size.base() / ranks;
    units.latency = std::min(units.latency, one.time.base() / messages);
    units.inverse =
        std::min(units.inverse, one.time.base() / (messages * message));
    least = std::min(least, message);
    largest = std::max(largest, message);
  }
  if (!(largest > kSameSize * least)) {
    throw InputError(
        "all-reduces: expected two different sizes and more: one size does "
        "not tell latency from bandwidth");
  }
  return units;
}

// The link as its inverse, over which the time is linear.
model::RingLevel<double> RingAt(std::span<const double> positions,
                                const Units& units) {
  return {
      model::Second(positions[kLatency] * units.latency),
      model::BytesPerSecond<>(1.0 / (positions[kInverseLink] * units.inverse))};
}

// The relative errors over both positions, without a prior of any weight.
FitProblem ProblemOf(const std::vector<TimedAllReduce>& times,
                     const Units& units) {
  constexpr double kNoPrior = 1e6;
  constexpr double kFar = 10.0;
  FitProblem problem(
      {{.prior = 0.5, .prior_sigma = kNoPrior, .lower = -kFar, .upper = kFar},
       {.prior = 0.5, .prior_sigma = kNoPrior, .lower = -kFar, .upper = kFar}},
      /*robust_scale=*/0.0);
  problem.Add(ByDifferences(
      times.size(),
      2,
      [&times, units](std::span<const double> at, std::span<double> residuals) {
        const model::RingLevel<double> ring = RingAt(at, units);
        for (size_t i = 0; i < times.size(); ++i) {
          const model::Seconds<> modelled = model::RingAllReduceTime(
              times[i].ranks, times[i].size, ring.step_latency, ring.link);
          residuals[i] = 1.0 - modelled / times[i].time;
        }
      }));
  return problem;
}

// A latency below 0 is none: it is held there then.
Solution SolutionOf(const FitProblem& problem, bool& on_bound) {
  std::string message;
  std::optional<Solution> solution =
      Solve(problem, PriorPositions(problem), {}, &message);
  on_bound = solution && solution->positions[kLatency] < 0;
  if (on_bound) {
    solution = Solve(problem, {0.0, 0.5}, {.held = {true, false}}, &message);
  }
  if (!solution) {
    throw InputError("all-reduces: the ring does not converge: " + message);
  }
  if (!(solution->positions[kInverseLink] > 0)) {
    throw InputError("all-reduces: expected times that grow with the size");
  }
  return *solution;
}

}  // namespace

RingFit FitRing(const std::vector<TimedAllReduce>& times) {
  const Units units = UnitsOf(times);
  const FitProblem problem = ProblemOf(times, units);
  bool on_bound = false;
  const Solution solution = SolutionOf(problem, on_bound);
  const double inverse = solution.positions[kInverseLink];
  RingFit fit;
  fit.ring = RingAt(solution.positions, units);
  const double freedom =
      static_cast<double>(times.size()) - (on_bound ? 1.0 : 2.0);
  fit.scatter =
      ScatterWithPrior(2.0 * solution.cost, freedom, FitOptions().model_sigma);
  // Residuals have no standard deviation of their own: the scatter is theirs.
  const Eigen::MatrixXd covariance =
      PosteriorCovariance(problem, solution.positions);
  if (on_bound) {
    const Eigen::MatrixXd information = covariance.inverse();
    fit.link_error =
        fit.scatter /
        (std::sqrt(information(kInverseLink, kInverseLink)) * inverse);
    return fit;
  }
  const double of_latency = std::sqrt(covariance(kLatency, kLatency));
  const double of_inverse = std::sqrt(covariance(kInverseLink, kInverseLink));
  fit.latency_error = model::Second(fit.scatter * of_latency * units.latency);
  fit.link_error = fit.scatter * of_inverse / inverse;
  fit.correlation =
      covariance(kLatency, kInverseLink) / (of_latency * of_inverse);
  return fit;
}

}  // namespace trainfare::calibrate
