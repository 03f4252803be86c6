#include "calibrate/ring_fit.h"

#include <doctest/doctest.h>

#include "model/error.h"

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
  const auto ring = FitRing(Times(3e-4, 1.2e8));
  CHECK(ring.step_latency.base() ==
        doctest::Approx(3e-4).epsilon(1e-9).scale(0));
  CHECK(ring.link.base() == doctest::Approx(1.2e8).epsilon(1e-9));
}

TEST_CASE("no latency is no negative latency") {
  std::vector<TimedAllReduce> times = Times(0.0, 1e8);
  // The largest ones take longer, as if the small ones came early.
  times[2].time = times[2].time * 1.1;
  times[5].time = times[5].time * 1.1;
  const auto ring = FitRing(times);
  CHECK(ring.step_latency.base() == 0.0);
  CHECK(ring.link.base() < 1e8);
  CHECK(ring.link.base() > 0.9e8);
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
