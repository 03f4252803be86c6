#include "calibrate/fit/parallel_for.h"

#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace trainfare::calibrate {

TEST_CASE("every task runs once, and none where there are none") {
  std::vector<int> runs(1000, 0);
  ParallelFor(runs.size(), [&](size_t i) { ++runs[i]; });
  CHECK(std::accumulate(runs.begin(), runs.end(), 0) == 1000);
  CHECK(runs == std::vector<int>(1000, 1));
  ParallelFor(0, [](size_t) { FAIL("nothing to do"); });
}

TEST_CASE("what a task throws is thrown once all have ended") {
  CHECK_THROWS_WITH_AS(ParallelFor(100,
                                   [](size_t i) {
                                     if (i == 7)
                                       throw std::runtime_error("seven");
                                   }),
                       "seven",
                       std::runtime_error);
}

}  // namespace trainfare::calibrate
