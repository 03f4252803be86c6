#include "model/launch_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {
namespace {

struct Launch {
  double host = 0;
  double device = 0;
  int times = 1;
};

// The recursion itself, kernel by kernel.
double EndOfQueue(const std::vector<Launch>& block, int repeat) {
  double host = 0;
  double ready = 0;
  for (int i = 0; i < repeat; ++i) {
    for (const Launch& launch : block) {
      for (int time = 0; time < launch.times; ++time) {
        host += launch.host;
        ready = std::max(ready, host) + launch.device;
      }
    }
  }
  return ready;
}

LaunchMap<double> MapOf(const std::vector<Launch>& block) {
  LaunchMap<double> map;
  for (const Launch& launch : block) {
    map.Append(Seconds<>(launch.host), Seconds<>(launch.device), launch.times);
  }
  return map;
}

}  // namespace

TEST_CASE("repeated maps end when the recursion ends") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> cost(0.1, 2.0);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Launch> block(1 + random() % 6);
    for (Launch& launch : block) {
      launch = {cost(random), cost(random), 1 + static_cast<int>(random() % 3)};
    }
    for (const int repeat : {1, 2, 3, 12}) {
      LaunchQueue<double> queue;
      queue.Apply(MapOf(block).Repeated(repeat));
      CHECK(queue.ready.base() == Near(EndOfQueue(block, repeat), 1e-12));
    }
  }
}

TEST_CASE("a launch-bound queue takes the host's time plus the last kernel") {
  // 4422 launches of 8 us each, 1 us of work: 35.376 ms + 1 us.
  LaunchMap<double> map;
  map.Append(Microseconds(8), Microseconds(1), 4422);
  LaunchQueue<double> queue;
  queue.Apply(map);
  CHECK(ToMilliseconds(queue.ready) == Near(35.377));
}

}  // namespace trainfare::model
