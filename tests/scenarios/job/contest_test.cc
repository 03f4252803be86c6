#include "scenarios/job/contest.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "calibrate/records/statistics.h"
#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

// A standard deviation of its logarithm of `sigma`.
Contestant ContestantOf(const std::string& device, double value, double sigma) {
  const double factor = std::exp(calibrate::kNormalQuantile90 * sigma);
  // Each of a kind of its own, so that none errs as another does.
  return {device, device, {value, value / factor, value * factor}, {}};
}

double Phi(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Three standard errors of a share of the draws.
constexpr double kShareError = 0.034;

}  // namespace

TEST_CASE("a figure is off by its own half of the interval") {
  const Uncertain figure({100, 80, 150});
  CHECK(figure.At(0) == 100);
  CHECK(figure.At(calibrate::kNormalQuantile90) == Near(150, 1e-5));
  CHECK(figure.At(-calibrate::kNormalQuantile90) == Near(80, 1e-5));
}

// docs/models/calibration.md works this one out.
TEST_CASE("measuring one of two that look alike") {
  const Contest contest(
      {ContestantOf("known", 100, 1e-9), ContestantOf("new", 100, 0.3)});
  CHECK(std::abs(contest.odds()[0].best - 0.5) < kShareError);
  const double rho = 0.9;
  const Informed informed = contest.Measuring(0, {1}, rho);
  const double right = 0.5 + std::asin(rho) / std::numbers::pi;
  CHECK(right == Near(0.856, 0.001));
  CHECK(std::abs(informed.right - right) < kShareError);
  const double saved =
      100.0 * (0.5 - std::exp(0.3 * 0.3 / 2.0) * Phi(-rho * 0.3));
  CHECK(saved == Near(8.83, 0.001));
  CHECK(informed.saved == Near(saved, 0.1));
}

TEST_CASE("what says all leaves no doubt, what says nothing changes nothing") {
  const Contest contest(
      {ContestantOf("a", 100, 0.2), ContestantOf("b", 110, 1e-9)});
  const double before = contest.odds()[0].best;
  CHECK(contest.Measuring(0, {0}, 1.0).right == 1.0);
  const Informed nothing = contest.Measuring(0, {0}, 0.0);
  CHECK(nothing.right == Near(before, 1e-5));
  CHECK(nothing.saved == 0.0);
}

TEST_CASE("what would be taken anyway saves nothing") {
  const Contest contest(
      {ContestantOf("a", 100, 0.05), ContestantOf("b", 1000, 0.05)});
  const Informed informed = contest.Measuring(0, {1}, 1.0);
  CHECK(informed.right == 1.0);
  CHECK(informed.saved == 0.0);
}

// Two of one kind, 10 % apart, each to 10 %: their difference is sure to
// 0.1 sqrt(2 (1 - 0.8)) = 0.0632, so that the first is best with
// Phi(log(1.1) / 0.0632) = 93.4 %; of two kinds with Phi(0.0953 / 0.1414) = 75.
TEST_CASE("devices of one kind err together in part") {
  Contestant a = ContestantOf("a", 100, 0.1);
  Contestant b = ContestantOf("b", 110, 0.1);
  const auto odds = [&] { return Contest({a, b}).odds()[0].best; };
  const auto sure = [](double shared) {
    return Phi(std::log(1.1) / (0.1 * std::sqrt(2.0 * (1.0 - shared))));
  };
  CHECK(std::abs(odds() - sure(0)) < kShareError);
  a.kind = b.kind;
  CHECK(sure(kSharedByKind) == Near(0.934, 0.001));
  CHECK(std::abs(odds() - sure(kSharedByKind)) < kShareError);
}

TEST_CASE("who is above a limit is out, whatever its score") {
  Contestant late = ContestantOf("a", 1, 0.2);
  late.limits.emplace_back(ScoreRange{200, 199, 201}, 100.0);
  Contestant even = ContestantOf("b", 2, 0.2);
  even.limits.emplace_back(ScoreRange{100, 90, 110}, 100.0);
  const Contest contest({late, even});
  CHECK(contest.odds()[0].within == 0.0);
  CHECK(contest.odds()[1].within == Near(0.5, 0.07));
  CHECK(contest.odds()[1].best == contest.odds()[1].within);
}

}  // namespace trainfare::scenarios
