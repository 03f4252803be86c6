#include "scenarios/commands/choice_odds.h"

#include <doctest/doctest.h>

#include <cmath>

#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

// A candidate whose cost in dollars and time in seconds are the same number.
Candidate Of(const std::string& device, double value, double factor) {
  Candidate c;
  c.device = device;
  c.job.emplace();
  c.job->capacity = model::Byte(1.0);
  c.job->run.training = model::Seconds<>(value);
  c.job->run_low = model::Seconds<>(value / factor);
  c.job->run_high = model::Seconds<>(value * factor);
  c.cost = model::Usd<>(value);
  c.cost_low = model::Usd<>(value / factor);
  c.cost_high = model::Usd<>(value * factor);
  return c;
}

double BestOf(const Candidate& c) { return c.best_probability.value_or(-1.0); }

}  // namespace

TEST_CASE("the odds of two are those of the difference of their logarithms") {
  std::vector<Candidate> two = {Of("a", 100, 1.5), Of("b", 120, 1.2)};
  SetOdds({}, two);
  // P(log a - log b < 0) of normals, sigma = log(factor) / z_90.
  const double spread =
      std::hypot(std::log(1.5), std::log(1.2)) / calibrate::kNormalQuantile90;
  const double expected =
      0.5 * std::erfc(-std::log(120.0 / 100.0) / spread / std::sqrt(2.0));
  // Three standard errors of a share of the draws.
  CHECK(BestOf(two[0]) == doctest::Approx(expected).epsilon(0.04));
  CHECK(BestOf(two[0]) + BestOf(two[1]) == doctest::Approx(1.0));
  CHECK(two[0].limits_probability == 1.0);
}

TEST_CASE("candidates of one device err together") {
  std::vector<Candidate> two = {Of("a", 100, 2.0), Of("a", 101, 2.0)};
  SetOdds({}, two);
  CHECK(BestOf(two[0]) == 1.0);
  CHECK(BestOf(two[1]) == 0.0);
}

TEST_CASE("a limit at the figure itself is met in half of the draws") {
  std::vector<Candidate> one = {Of("a", 100, 1.5)};
  RecommendOptions options;
  options.deadline = model::Seconds<>(100.0);
  SetOdds(options, one);
  CHECK(one[0].limits_probability.value_or(0) ==
        doctest::Approx(0.5).epsilon(0.07));
  CHECK(one[0].best_probability == one[0].limits_probability);
}

TEST_CASE("what could not be the choice has no odds, and takes none") {
  std::vector<Candidate> three = {
      Of("a", 100, 1.5), Of("b", 1, 1.1), Of("c", 90, 1.1)};
  three[1].objection.kind = Obstacle::kNoPrice;
  three[1].cost.reset();
  three[2].objection.kind = Obstacle::kMissesDeadline;
  SetOdds({}, three);
  CHECK_FALSE(three[1].best_probability.has_value());
  CHECK(BestOf(three[0]) + BestOf(three[2]) == doctest::Approx(1.0));
  // The same draws every time.
  const double first = BestOf(three[0]);
  SetOdds({}, three);
  CHECK(BestOf(three[0]) == first);
}

}  // namespace trainfare::scenarios
