#include "scenarios/commands/choice_odds.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "calibrate/records/statistics.h"
#include "hardware/catalog/instance.h"
#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

// A candidate whose cost in dollars and time in seconds are the same number.
Candidate CandidateOf(const std::string& device, double value, double factor) {
  Candidate c;
  c.device = device;
  c.job.emplace();
  c.job->capacity = model::Byte(1.0);
  c.job->run.training = model::Seconds<>(value);
  c.job->run_low = model::Seconds<>(value / factor);
  c.job->run_high = model::Seconds<>(value * factor);
  c.cost = {model::Usd<>(value),
            model::Usd<>(value / factor),
            model::Usd<>(value * factor)};
  return c;
}

double BestOf(const Candidate& c) { return c.best_probability.value_or(-1.0); }

}  // namespace

TEST_CASE("the odds of two are those of the difference of their logarithms") {
  std::vector<Candidate> two = {CandidateOf("l4", 100, 1.5),
                                CandidateOf("tpu_v3", 120, 1.2)};
  SetOdds({}, two);
  // For two kinds P(log a - log b < 0) of normals, sigma = log(factor) / z_90.
  const double spread =
      std::hypot(std::log(1.5), std::log(1.2)) / calibrate::kNormalQuantile90;
  const double expected =
      0.5 * std::erfc(-std::log(120.0 / 100.0) / spread / std::sqrt(2.0));
  // Three standard errors of a share of the draws.
  CHECK(BestOf(two[0]) == Near(expected, 0.04));
  CHECK(BestOf(two[0]) + BestOf(two[1]) == Near(1.0, 1e-5));
  CHECK(two[0].limits_probability == 1.0);
}

TEST_CASE("candidates of one device err together") {
  std::vector<Candidate> two = {CandidateOf("l4", 100, 2.0),
                                CandidateOf("l4", 101, 2.0)};
  SetOdds({}, two);
  CHECK(BestOf(two[0]) == 1.0);
  CHECK(BestOf(two[1]) == 0.0);
}

TEST_CASE("a limit at the figure itself is met in half of the draws") {
  std::vector<Candidate> one = {CandidateOf("l4", 100, 1.5)};
  RecommendOptions options;
  options.deadline = model::Seconds<>(100.0);
  SetOdds(options, one);
  CHECK(one[0].limits_probability.value_or(0) == Near(0.5, 0.07));
  CHECK(one[0].best_probability == one[0].limits_probability);
}

namespace {

const hardware::Instance& InstanceOf(const char* name) {
  return hardware::InstanceCatalog::Shipped().Find(name);
}

// A run of a day of steps alone, rented by the second.
Candidate On(const char* name, double cost, double factor, bool chosen) {
  const hardware::Instance& instance = InstanceOf(name);
  Candidate c = CandidateOf(instance.device, cost, factor);
  c.instance = &instance;
  c.job->step.low_factor = 1.0 / factor;
  c.job->step.high_factor = factor;
  c.tariff.emplace();
  c.tariff->price = model::DollarsPerHour(0.6);
  c.chosen = chosen;
  return c;
}

}  // namespace

TEST_CASE("the next calibration is the one that saves most beyond its price") {
  std::vector<Candidate> two = {On("aws/g6.xlarge", 100, 1.01, true),
                                On("aws/g5.xlarge", 100, 1.5, false)};
  const auto next = NextCalibrationOf({}, SetOdds({}, two));
  REQUIRE(next.has_value());
  // The other one is known better already than a fit would know it.
  CHECK(next->on == &InstanceOf("aws/g5.xlarge"));
  // 120 s at $0.6 an hour, of a run without start-up.
  CHECK(next->time == model::Second(120.0));
  CHECK(ToDollars(next->cost) == Near(0.02, 1e-5));
  // rho of a step known to 31.6 % that becomes known to 5 %.
  const double sigma = std::log(1.5) / calibrate::kNormalQuantile90;
  const double rho = std::sqrt(1.0 - 0.05 * 0.05 / (sigma * sigma));
  CHECK(next->best_probability ==
        Near(0.5 + std::asin(rho) / std::numbers::pi, 0.04));
  CHECK(ToDollars(next->saved.value_or(model::Usd<>())) > 5.0);
  CHECK(Words(*next, two[0])
            .starts_with("one calibration on aws/g5.xlarge ($0.02, 2 min) "
                         "would raise the odds of "
                         "the right choice from "));
  // Who costs least on average may be the cheapest less often.
  NextCalibration rarer = *next;
  rarer.best_probability = 0.25;
  two[0].best_probability = 0.5;
  CHECK(Words(rarer, two[0])
            .ends_with(" of the expected cost, though the odds of the right "
                       "choice go from 50 to 25 %"));
  RecommendOptions fastest;
  fastest.objective = Objective::kTime;
  CHECK_FALSE(NextCalibrationOf(fastest, SetOdds(fastest, two))->saved);
}

TEST_CASE("no calibration where none would decide") {
  const auto next_of = [](std::vector<Candidate> candidates) {
    return NextCalibrationOf({}, SetOdds({}, candidates)).has_value();
  };
  // The choice is certain; what is to be found out is known; nothing fits; the
  // trainer does not run there.
  CHECK_FALSE(next_of({On("aws/g6.xlarge", 100, 1.5, true),
                       On("aws/g5.xlarge", 10000, 1.5, false)}));
  CHECK_FALSE(next_of({On("aws/g6.xlarge", 100, 1.05, true),
                       On("aws/g5.xlarge", 100, 1.05, false)}));
  CHECK_FALSE(next_of({}));
  CHECK_FALSE(next_of({On("gcp/tpu-v5litepod-1", 100, 1.5, true),
                       On("gcp/tpu-v6e-1", 100, 1.5, false)}));
  // What a calibration costs is more than there is to save.
  CHECK_FALSE(next_of({On("aws/g6.xlarge", 0.01, 1.1, true),
                       On("aws/g5.xlarge", 0.0115, 1.1, false)}));
}

TEST_CASE("what could not be the choice has no odds, and takes none") {
  std::vector<Candidate> three = {CandidateOf("l4", 100, 1.5),
                                  CandidateOf("t4", 1, 1.1),
                                  CandidateOf("a10g", 90, 1.1)};
  three[1].objection.kind = Obstacle::kNoPrice;
  three[1].cost.reset();
  three[2].objection.kind = Obstacle::kMissesDeadline;
  SetOdds({}, three);
  CHECK_FALSE(three[1].best_probability.has_value());
  CHECK(BestOf(three[0]) + BestOf(three[2]) == Near(1.0, 1e-5));
  // The same draws every time.
  const double first = BestOf(three[0]);
  SetOdds({}, three);
  CHECK(BestOf(three[0]) == first);
}

}  // namespace trainfare::scenarios
