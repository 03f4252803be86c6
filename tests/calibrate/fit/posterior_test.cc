// Covariance, verdict and left-out fits (calibrate/fit/posterior.h).

#include "calibrate/fit/posterior.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

BoundedParameter Wide(double prior, double sigma) {
  return {.prior = prior, .prior_sigma = sigma, .lower = -20, .upper = 20};
}

// Times of steps t(x) = exp(a) + exp(b) x^exp(c) for x from 1 to 2^(n - 1), as
// a launch-bound part and one that grows; four readings a run, 3 % of noise.
struct SyntheticProblem {
  explicit SyntheticProblem(size_t runs, double outlier = 0.0)
      : problem({Wide(0.2, 1.0), Wide(-3.0, 1.0), Wide(0.1, 0.3)}, 2.0) {
    std::mt19937 random(7);
    std::normal_distribution<double> noise(0.0, 0.03);
    for (size_t run = 0; run < runs; ++run) {
      const double x = std::exp2(static_cast<double>(run % 12));
      const double level = noise(random);
      std::vector<double> measured;
      for (int i = 0; i < 4; ++i) {
        measured.push_back(std::log(1.0 + 0.05 * x) + level +
                           0.3 * noise(random) + (run == 5 ? outlier : 0.0));
      }
      log_times.push_back(measured);
      problem.Add(ByDifferences(4,
                                3,
                                [measured, x](std::span<const double> at,
                                              std::span<double> residuals) {
                                  const double modelled = LogTime(at, x);
                                  for (size_t i = 0; i < 4; ++i) {
                                    residuals[i] =
                                        (modelled - measured[i]) / 0.03;
                                  }
                                }),
                  {run, run, run, run});
    }
  }
  static double LogTime(std::span<const double> at, double x) {
    return std::log(std::exp(at[0]) +
                    std::exp(at[1]) * std::pow(x, std::exp(at[2])));
  }

  FitProblem problem;
  std::vector<std::vector<double>> log_times;
};

// How far the left-out times by leverage are from those of full refits, at
// most, of their logs.
double WorstDifference(const SyntheticProblem& data) {
  std::string message;
  const auto posterior =
      FindPosterior(data.problem, PriorPositions(data.problem), &message);
  REQUIRE_MESSAGE(posterior.has_value(), message);
  const auto without = LeaveOutEachGroup(data.problem, *posterior);
  REQUIRE(without.size() == data.log_times.size());
  double worst = 0.0;
  for (size_t run = 0; run < without.size(); ++run) {
    REQUIRE(without[run].has_value());
    const auto refit =
        Solve(data.problem,
              posterior->positions,
              {.held = posterior->held, .without_groups = {run}});
    REQUIRE(refit.has_value());
    const double x = std::exp2(static_cast<double>(run % 12));
    worst = std::max(worst,
                     std::abs(SyntheticProblem::LogTime(*without[run], x) -
                              SyntheticProblem::LogTime(refit->positions, x)));
  }
  return worst;
}

TEST_CASE("runs left out by leverage are as their full refits") {
  // Far below what a run scatters by, 3 %: a fifth of it.
  constexpr double kAllowed = 0.2 * 0.03;
  CHECK(WorstDifference(SyntheticProblem(8)) < kAllowed);
  CHECK(WorstDifference(SyntheticProblem(24)) < kAllowed);
  CHECK(WorstDifference(SyntheticProblem(96)) < kAllowed);
  // With one run that is off by 60 %, which the robust loss lets go.
  CHECK(WorstDifference(SyntheticProblem(24, 0.5)) < kAllowed);
}

TEST_CASE("of a mean the left-out mean is that of the others, exactly") {
  const std::vector<double> values = {1.0, 2.0, 4.0, 8.0, 3.0, 5.0};
  FitProblem problem({Wide(0.0, 1e6)}, 0.0);
  for (const double value : values) {
    problem.Add(ByDifferences(
        1, 1, [value](std::span<const double> at, std::span<double> residuals) {
          residuals[0] = at[0] - value;
        }));
  }
  std::string message;
  const auto posterior =
      FindPosterior(problem, PriorPositions(problem), &message);
  REQUIRE(posterior.has_value());
  CHECK(posterior->positions[0] == Near(23.0 / 6.0, 1e-4));
  // The variance of the mean of six values with a standard deviation of 1.
  CHECK(posterior->covariance(0, 0) == Near(1.0 / 6.0, 1e-6));
  const auto without =
      LeaveOutEachGroup(problem, *posterior, /*largest_leverage=*/0.5);
  for (size_t i = 0; i < values.size(); ++i) {
    REQUIRE(without[i].has_value());
    CHECK(without[i]->front() == Near((23.0 - values[i]) / 5.0, 1e-4));
  }
}

TEST_CASE("what the data do not determine stays at its prior") {
  // Only the sum of two is measured, and the first has the wider prior.
  FitProblem problem({Wide(1.0, 2.0), Wide(3.0, 0.5), Wide(-1.0, 0.5)}, 0.0);
  problem.Add(ByDifferences(
      1, 3, [](std::span<const double> at, std::span<double> residuals) {
        residuals[0] = (at[0] + at[1] - 4.2) / 0.1;
      }));
  std::string message;
  const auto posterior =
      FindPosterior(problem, PriorPositions(problem), &message);
  REQUIRE(posterior.has_value());
  CHECK(!posterior->held[0]);
  CHECK(posterior->held[1]);
  CHECK(posterior->held[2]);
  CHECK(posterior->positions[1] == 3.0);
  CHECK(posterior->positions[2] == -1.0);
  CHECK(posterior->positions[0] == Near(1.2, 1e-2));
  CHECK(NarrowedTo(problem, posterior->covariance, 2) == Near(1.0, 1e-5));
}

}  // namespace
}  // namespace trainfare::calibrate
