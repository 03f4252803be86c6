#include "calibrate/fit/ring_fit.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

std::vector<TimedAllReduce> Times(double latency_s, double link) {
  std::vector<TimedAllReduce> times;
  for (const int64_t ranks : {2, 4}) {
    for (const double size : {1e5, 1e6, 1e7}) {
      times.push_back(
          {ranks,
           model::Byte(size),
           model::RingAllReduceTime(ranks,
                                    model::Byte(size),
                                    model::Second(latency_s),
                                    model::BytesPerSecond<>(link))});
    }
  }
  return times;
}

}  // namespace

TEST_CASE("a ring is found again from its times") {
  const auto ring = FitRing(Times(3e-4, 1.2e8)).ring;
  CHECK(ring.step_latency.base() == Near(3e-4));
  CHECK(ring.link.base() == Near(1.2e8));
}

TEST_CASE("no latency is no negative latency") {
  std::vector<TimedAllReduce> times = Times(0.0, 1e8);
  // The largest ones take longer, as if the small ones came early.
  times[2].time = times[2].time * 1.1;
  times[5].time = times[5].time * 1.1;
  const auto ring = FitRing(times).ring;
  CHECK(ring.step_latency.base() == 0.0);
  CHECK(ring.link.base() < 1e8);
  CHECK(ring.link.base() > 0.9e8);
}

// With x = 2 / t = 166.7 and 90.91, y = S / t =
// 8.333e7 and 9.091e7: xx = 36042, yy = 1.5209e16, xy = 2.2153e10, determinant
// 5.739e19; a = 1 ms +- 0.05 sqrt(yy / det) = 0.81 ms, 1/B = 1e-8 +- 0.05
// sqrt(xx / det) = 1.25e-9 s/B, 12.5 %, correlation -0.946. A bucket of 4 MB:
// 42 ms +- sqrt((2 x 0.814)^2 + 5.01^2 - 2 x 0.946 x 1.63 x 5.01) = 3.5 ms.
TEST_CASE("how sure a ring is, by hand") {
  const std::vector<TimedAllReduce> times = {
      {2, model::Byte(1e6), model::Second(0.012)},
      {2, model::Byte(2e6), model::Second(0.022)}};
  const RingFit fit = FitRing(times);
  const auto near = [](double value) { return Near(value, 1e-3); };
  CHECK(fit.ring.step_latency.base() == near(1e-3));
  CHECK(fit.ring.link.base() == near(1e8));
  CHECK(fit.scatter == near(0.05));
  CHECK(fit.latency_error.base() == near(0.814e-3));
  CHECK(fit.link_error == near(0.1253));
  CHECK(fit.correlation == near(-0.9462));
}

TEST_CASE("errors shrink with the number of times") {
  std::vector<TimedAllReduce> times = Times(3e-4, 1.2e8);
  const RingFit few = FitRing(times);
  const std::vector<TimedAllReduce> once = times;
  for (int i = 0; i < 9; ++i) {
    times.insert(times.end(), once.begin(), once.end());
  }
  const RingFit many = FitRing(times);
  CHECK(many.link_error < few.link_error / 3.0);
  CHECK(many.latency_error < few.latency_error / 3.0);
}

TEST_CASE("times that tell nothing are refused") {
  std::vector<TimedAllReduce> one = {Times(1e-4, 1e8).front()};
  CHECK_THROWS_AS(FitRing(one), model::InputError);
  one.push_back(one.front());
  CHECK_THROWS_AS(FitRing(one), model::InputError);
  one.front().ranks = 1;
  CHECK_THROWS_AS(FitRing(one), model::InputError);
}

}  // namespace trainfare::calibrate
