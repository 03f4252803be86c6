// The one least-squares problem (calibrate/fit/problem.h).

#include "calibrate/fit/problem.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

// (a + b x - y) / 0.1 at points of the line y = 1 + 2 x, with the given errors.
std::unique_ptr<ResidualBlock> Line(std::vector<double> errors) {
  const size_t count = errors.size();
  return ByDifferences(
      count,
      2,
      [errors = std::move(errors)](std::span<const double> at,
                                   std::span<double> residuals) {
        for (size_t i = 0; i < errors.size(); ++i) {
          const auto x = static_cast<double>(i);
          const double y = 1.0 + 2.0 * x + errors[i];
          residuals[i] = (at[0] + at[1] * x - y) / 0.1;
        }
      });
}

const BoundedParameter kWide = {
    .prior = 0.5, .prior_sigma = 1e3, .lower = -100.0, .upper = 100.0};

TEST_CASE("a line is found, whatever the start") {
  FitProblem problem({kWide, kWide}, 0.0);
  problem.Add(Line({0, 0, 0, 0}));
  CHECK(problem.residuals() == 4);
  CHECK(problem.groups() == 1);
  for (const double start : {-50.0, 0.5, 90.0}) {
    const auto solution = Solve(problem, {start, start});
    REQUIRE(solution.has_value());
    CHECK(solution->positions[0] == Near(1.0, 1e-5));
    CHECK(solution->positions[1] == Near(2.0, 1e-5));
  }
}

// Of six points on a line and one more every second is far off it.
TEST_CASE("a stride takes one of so many groups, as if without the others") {
  FitProblem problem({kWide, kWide}, 0.0);
  problem.Add(Line({0, 30, 0, -20, 0, 10}), {0, 1, 2, 3, 4, 5});
  problem.Add(Line({40}), {3});
  const auto strided = Solve(problem, {0.5, 0.5}, {.stride = 2});
  const auto without =
      Solve(problem, {0.5, 0.5}, {.without_groups = {1, 3, 5}});
  const auto whole = Solve(problem, {0.5, 0.5});
  REQUIRE(strided.has_value());
  REQUIRE(without.has_value());
  REQUIRE(whole.has_value());
  CHECK(strided->positions == without->positions);
  CHECK(strided->positions[0] == Near(1.0, 1e-5));
  CHECK(strided->positions[1] == Near(2.0, 1e-5));
  CHECK(std::abs(whole->positions[0] - 1.0) > 1.0);
}

TEST_CASE("a prior counts by its sigma, against data by theirs") {
  // One residual (x - 1) / 0.1 and a prior of 0 +- 0.1: half way.
  FitProblem problem(
      {{.prior = 0, .prior_sigma = 0.1, .lower = -9, .upper = 9}}, 0.0);
  problem.Add(ByDifferences(
      1, 1, [](std::span<const double> at, std::span<double> residuals) {
        residuals[0] = (at[0] - 1.0) / 0.1;
      }));
  const auto solution = Solve(problem, PriorPositions(problem));
  REQUIRE(solution.has_value());
  CHECK(solution->positions[0] == Near(0.5, 1e-6));
  // Two times (5 standard deviations)^2 / 2.
  CHECK(solution->cost == Near(25.0, 1e-6));
}

TEST_CASE("a bound is not passed, what is held does not move") {
  FitProblem problem(
      {kWide, {.prior = 1.0, .prior_sigma = 1e3, .lower = 0.0, .upper = 1.5}},
      0.0);
  problem.Add(Line({0, 0, 0, 0}));
  const auto bounded = Solve(problem, PriorPositions(problem));
  REQUIRE(bounded.has_value());
  CHECK(bounded->positions[1] <= 1.5);
  CHECK(bounded->positions[1] > 1.49);
  const auto held =
      Solve(problem, PriorPositions(problem), {.held = {false, true}});
  REQUIRE(held.has_value());
  CHECK(held->positions[1] == 1.0);
  // The mean of 1 + 2 x - x over 0, 1, 2, 3.
  CHECK(held->positions[0] == Near(2.5, 1e-3));
  const auto all =
      Solve(problem, PriorPositions(problem), {.held = {true, true}});
  REQUIRE(all.has_value());
  // Residuals 5 (0.5 + 1 x is below 1 + 2 x by 0.5 + x): 5, 15, 25, 35.
  CHECK(all->cost == Near(0.5 * (25 + 225 + 625 + 1225)));
}

TEST_CASE("a robust loss lets an outlier go, and a group can be left out") {
  FitProblem problem({kWide, kWide}, 2.0);
  problem.Add(Line({0, 0, 0, 0, 0, 50.0}), {0, 1, 2, 3, 4, 5});
  CHECK(problem.groups() == 6);
  const auto robust = Solve(problem, {1.0, 2.0});
  REQUIRE(robust.has_value());
  CHECK(robust->positions[1] == Near(2.0, 1e-2));
  CHECK(problem.Weight(500.0) < 1e-4);
  CHECK(problem.Weight(0.0) == 1.0);
  const auto without =
      Solve(problem, {1.0, 2.0}, {.held = {}, .without_groups = {5}});
  REQUIRE(without.has_value());
  CHECK(without->positions[1] == Near(2.0, 1e-6));
}

TEST_CASE("shared and own parameters: a rate of two devices, an offset each") {
  // y_d(x) = offset_d + rate x with offsets 1 and 3, rate 2.
  FitProblem problem({kWide, kWide, kWide}, 0.0);
  for (const size_t device : {size_t{0}, size_t{1}}) {
    problem.Add(ByDifferences(
        3,
        3,
        [device](std::span<const double> at, std::span<double> residuals) {
          for (size_t i = 0; i < 3; ++i) {
            const auto x = static_cast<double>(i);
            const double y = (device == 0 ? 1.0 : 3.0) + 2.0 * x;
            residuals[i] = (at[device] + at[2] * x - y) / 0.1;
          }
        }));
  }
  const auto solution = Solve(problem, PriorPositions(problem));
  REQUIRE(solution.has_value());
  CHECK(solution->positions[0] == Near(1.0, 1e-5));
  CHECK(solution->positions[1] == Near(3.0, 1e-5));
  CHECK(solution->positions[2] == Near(2.0, 1e-5));
}

TEST_CASE("what is not finite, and what is not bounded, is refused") {
  FitProblem problem({kWide}, 0.0);
  problem.Add(ByDifferences(
      1, 1, [](std::span<const double> at, std::span<double> residuals) {
        residuals[0] = std::log(-1.0 - at[0] * at[0]);
      }));
  std::string message;
  CHECK(!Solve(problem, {0.0}, {}, &message));
  CHECK(!message.empty());
  CHECK_THROWS_AS(
      FitProblem({{.prior = 0, .prior_sigma = 1, .lower = 1, .upper = 1}}, 0.0),
      std::logic_error);
}

}  // namespace
}  // namespace trainfare::calibrate
