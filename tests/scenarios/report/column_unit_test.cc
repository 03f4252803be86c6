#include "scenarios/report/column_unit.h"

#include <doctest/doctest.h>

namespace trainfare::scenarios {

TEST_CASE("a column has the unit that fits its middle value") {
  CHECK(TimeUnit({0.005, 0.02, 90.0}).name == "ms");
  CHECK(TimeUnit({59.0, 61.0, 7000.0}).Title("time") == "time (s)");
  CHECK(TimeUnit({59.0, 150.0, 7000.0}).Title("time") == "time (min)");
  CHECK(TimeUnit({59.0, 150.0, 7000.0}).Text(90.0) == "1.50");
  // An empty column has none.
  CHECK(TimeUnit({}).Title("time") == "time");
  CHECK(EnergyUnit({9781.2}).Text(9781.2) == "2.72");
  CHECK(MemoryUnit({3.0 * 1024 * 1024 * 1024}).Title("memory") ==
        "memory (GiB)");
}

TEST_CASE("numbers have their digits and no exponent") {
  CHECK(PlainNumber(0.0173312, 3) == "0.0173");
  CHECK(PlainNumber(1.0, 3) == "1.00");
  CHECK(PlainNumber(123456.7, 3) == "123457");
  CHECK(PlainNumber(0, 3) == "0");
}

}  // namespace trainfare::scenarios
