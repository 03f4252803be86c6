#include "model/units.h"

#include <doctest/doctest.h>

#include <type_traits>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {

TEST_CASE("a quotient has the type of what it is") {
  const auto time = GB(4.8) / GBPerSecond(4800.0);
  static_assert(std::is_same_v<decltype(time), const Seconds<>>);
  CHECK(ToMilliseconds(time) == Near(1.0, 1e-12));

  const auto ridge = TFlopPerSecond(989.0) / GBPerSecond(4800.0);
  static_assert(std::is_same_v<decltype(ridge), const FlopsPerByte<>>);
  CHECK(ridge.base() == Near(206.0416666, 1e-8));
}

TEST_CASE("a dimensionless quotient is a number") {
  static_assert(std::is_same_v<decltype(Hours(1) / Hours(2)), double>);
  CHECK(Hours(1) / Hours(2) == 0.5);
}

TEST_CASE("peak and bandwidth cannot be swapped") {
  CHECK_FALSE(std::is_convertible_v<FlopsPerSecond<>, BytesPerSecond<>>);
  CHECK_FALSE(std::is_convertible_v<double, Seconds<>>);
}

TEST_CASE("cost is price times time, energy is power times time") {
  CHECK(ToDollars(DollarsPerHour(3.06) * Hours(2.0)) == Near(6.12, 1e-12));
  CHECK(ToKilowattHours(Watt(250.0) * Hours(4.0)) == Near(1.0, 1e-12));
}

TEST_CASE("GiB is not GB") {
  CHECK(ToBytes(GiB(1)) == 1073741824.0);
  CHECK(ToBytes(GB(1)) == 1e9);
}

}  // namespace trainfare::model
