#pragma once

// Latency and bandwidth of a ring, from timed all-reduces.

#include <cstdint>
#include <vector>

#include "calibrate/fit/rank_network.h"
#include "model/units.h"

namespace trainfare::calibrate {

struct TimedAllReduce {
  int64_t ranks = 0;
  model::Bytes<> size;
  model::Seconds<> time;
};

// The ring of RingAllReduceTime (model/collective.h) with the least squares of
// the relative errors. Throws InputError where the times do not tell latency
// from bandwidth: fewer than two sizes, or no growth with size.
//
//   r_i = 1 - x_i a - y_i u      x = 2 (n - 1) / t, y = x S / n, u = 1 / B
//   C   = s^2 (X^T X)^-1         s^2 = (sum r^2 + 3 0.05^2) / (m - p + 3)
//
//   m  all-reduces, p  of a and u not on a bound
//
// A handful of residuals says little of its own scatter: 5 % counts as three
// more (as FitOptions::model_sigma does). Solved as every fit (problem.h).
// Worked by hand in tests/calibrate/fit/ring_fit_test.cc.
RingFit FitRing(const std::vector<TimedAllReduce>& times);

}  // namespace trainfare::calibrate
