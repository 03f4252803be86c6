#include "model/padding.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/near.h"

namespace trainfare::model {

TEST_CASE("the expected longest of a batch, by hand") {
  // Half of length 1, half of length 2; a batch of 3: all of length 1 with
  // probability 1/8, so the mean length is 2 - 1/8.
  const auto histogram = LengthHistogram::FromCounts({{1, 10}, {2, 10}});
  const auto lengths = DynamicLengths(histogram, 3, 100);
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[0].share == Near(0.125, 1e-12));
  CHECK(lengths[1].share == Near(0.875, 1e-12));
  CHECK(MeanLength(lengths) == Near(1.875, 1e-12));
  CHECK(histogram.Mean() == Near(1.5, 1e-12));
}

TEST_CASE("lengths between the counted ones have none") {
  const auto histogram = LengthHistogram::FromCounts({{4, 1}, {7, 3}});
  CHECK(histogram.Cdf(3) == 0.0);
  CHECK(histogram.Cdf(4) == 0.25);
  CHECK(histogram.Cdf(6) == 0.25);
  CHECK(histogram.Cdf(7) == 1.0);
  CHECK(histogram.longest() == 7);
  CHECK(histogram.Mean() == Near(6.25, 1e-12));
  CHECK(histogram.MeanCutAt(5) == Near(4.75, 1e-12));
}

TEST_CASE("shares of dynamic lengths match draws") {
  const auto histogram = LengthHistogram::FromQuantiles(
      4, {{20, 0.5}, {38, 0.9}, {45, 0.95}, {57, 0.99}, {87, 1.0}});
  constexpr int64_t kBatch = 16;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  double sum = 0.0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    int64_t longest = 0;
    for (int64_t s = 0; s < kBatch; ++s) {
      const double u = uniform(random);
      int64_t length = histogram.shortest();
      while (histogram.Cdf(length) < u) ++length;
      longest = std::max(longest, length);
    }
    sum += static_cast<double>(longest);
  }
  // Standard error of the mean: about 12 / sqrt(20000) = 0.08 tokens.
  CHECK(MeanLength(DynamicLengths(histogram, kBatch, 512)) ==
        Near(sum / kDraws, 0.01));
}

TEST_CASE("a quantile is met and the mean is near the published one") {
  // published/s001_emotion_lengths_and_padding: 4 to 87 tokens, median 20,
  // 90 % 38, 95 % 45, 99 % 57; its mean, 22.26, is not used to make it.
  const auto histogram = LengthHistogram::FromQuantiles(
      4, {{20, 0.5}, {38, 0.9}, {45, 0.95}, {57, 0.99}, {87, 1.0}});
  CHECK(histogram.Cdf(38) == 0.9);
  CHECK(histogram.Cdf(3) == 0.0);
  CHECK(histogram.Mean() == Near(22.26, 0.025));
}

TEST_CASE("a limit cuts, and a batch is never longer than it") {
  const auto histogram = LengthHistogram::FromCounts({{10, 1}, {90, 1}});
  const auto lengths = DynamicLengths(histogram, 2, 32);
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[1].length == 32);
  CHECK(lengths[1].share == Near(0.75, 1e-12));
  const auto below = DynamicLengths(histogram, 2, 5);
  REQUIRE(below.size() == 1);
  CHECK(below[0].length == 5);
  CHECK(below[0].share == 1.0);
}

TEST_CASE("buckets round up, and what is too long is cut to the last") {
  const auto histogram =
      LengthHistogram::FromCounts({{10, 1}, {20, 1}, {90, 2}});
  const auto lengths = BucketedLengths(histogram, 1, {16, 32, 64});
  REQUIRE(lengths.size() == 3);
  CHECK(lengths[0].share == Near(0.25, 1e-12));
  CHECK(lengths[1].share == Near(0.25, 1e-12));
  CHECK(lengths[2].share == Near(0.5, 1e-12));
}

TEST_CASE("distinct lengths: one draw shows one, many show all") {
  const std::vector<PaddedLength> lengths = {{16, 0.5}, {32, 0.5}};
  CHECK(ExpectedDistinctLengths(lengths, 1) == Near(1.0, 1e-12));
  CHECK(ExpectedDistinctLengths(lengths, 2) == Near(1.5, 1e-12));
  CHECK(ExpectedDistinctLengths(lengths, 1000) == Near(2.0, 1e-12));
  CHECK(ExpectedDistinctLengths({{32, 1.0}}, 0) == 0.0);
}

}  // namespace trainfare::model
