#include "model/kernel_time.h"

#include <doctest/doctest.h>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {

// docs/models/cpu.md, "One kernel": 1 GFLOP at 10 TFLOP/s is 100 us, 40 MB at
// 1 TB/s is 40 us, 5 us fixed.
TEST_CASE("the equation worked by hand") {
  const auto compute = Flop(1e9) / TFlopPerSecond(10);
  const auto memory = MB(40) / GBPerSecond(1000);
  const auto fixed = Microseconds(5);
  CHECK(
      ToMicroseconds(KernelTime<double>(compute, memory, 0.0, fixed).total()) ==
      Near(145.0, 1e-12));
  CHECK(
      ToMicroseconds(KernelTime<double>(compute, memory, 1.0, fixed).total()) ==
      Near(105.0, 1e-12));
  const auto half = KernelTime<double>(compute, memory, 0.5, fixed);
  CHECK(ToMicroseconds(half.total()) == Near(125.0, 1e-12));
  CHECK(ToMicroseconds(half.compute) == Near(100.0, 1e-12));
  CHECK(ToMicroseconds(half.memory) == Near(20.0, 1e-12));
}

// 2 TB/s with 500 ns needs 1 MB under way; 100 kB reach a tenth.
TEST_CASE("Little's law bounds the bandwidth of small transfers") {
  CHECK(LatencyBoundShare<double>(
            MB(0.1), GBPerSecond(2000), Microseconds(0.5)) == Near(0.1, 1e-12));
  CHECK(LatencyBoundShare<double>(
            MB(10), GBPerSecond(2000), Microseconds(0.5)) == 1.0);
}

TEST_CASE("a working set as large as the cache is half uncached") {
  CHECK(UncachedShare(MiB(32), MiB(32)) == 0.5);
  CHECK(UncachedShare(MiB(1), Byte(0)) == 1.0);
}

}  // namespace trainfare::model
