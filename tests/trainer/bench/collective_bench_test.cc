#include "trainer/bench/collective_bench.h"

#include <doctest/doctest.h>

#include "tests/near.h"

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("products beside messages, of a queue that outlasts them") {
  // 100 products, 1000 a second alone: the messages are there after 80 ms, the
  // products done after 110. In the last 30 ms 30 of them, so 70 in the 80 ms
  // before: 875 a second.
  const auto beside = RoundsBeside(100, 0.110, 0.080, 1000);
  DOCTEST_REQUIRE(beside.has_value());
  DOCTEST_CHECK(*beside == Near(875, 1e-5));
  // Nothing slowed down: as fast as alone.
  DOCTEST_CHECK(*RoundsBeside(110, 0.110, 0.080, 1000) == Near(1000, 1e-5));
  // Messages that outlast the products say nothing of them.
  DOCTEST_CHECK_FALSE(RoundsBeside(50, 0.050, 0.080, 1000).has_value());
}

}  // namespace
}  // namespace trainfare::trainer
