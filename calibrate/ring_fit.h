#pragma once

// Latency and bandwidth of a ring, from timed all-reduces.

#include <cstdint>
#include <vector>

#include "model/collective.h"
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
model::RingLevel<double> FitRing(const std::vector<TimedAllReduce>& times);

}  // namespace trainfare::calibrate
