#include "model/cost.h"

#include <doctest/doctest.h>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {

TEST_CASE("time is billed in whole pieces, and a least one") {
  const Billing second{Second(1.0), Second(60.0)};
  CHECK(BilledTime(Second(90.2), second) == Second(91.0));
  CHECK(BilledTime(Second(12.0), second) == Second(60.0));
  CHECK(BilledTime(Seconds<>(), second) == Seconds<>());
  const Billing hour{Hours(1.0), Hours(1.0)};
  CHECK(BilledTime(Hours(2.0), hour) == Hours(2.0));
  CHECK(BilledTime(Hours(2.0) + Second(1.0), hour) == Hours(3.0));
}

TEST_CASE("a whole number of pieces is not rounded up by a rounding error") {
  const Billing tenth{Second(0.1), Seconds<>()};
  CHECK(ToSeconds(BilledTime(Second(0.1 * 3), tenth)) == Near(0.3, 1e-12));
}

TEST_CASE("cost is billed time times the price of the instance") {
  // published/s001_cost_per_epoch, T4: 122.39 s an epoch at 0.526 USD/h is
  // 0.0179 USD.
  const Billing exact{Microseconds(1.0), Seconds<>()};
  CHECK(ToDollars(RentalCost(Second(122.39), DollarsPerHour(0.526), exact)) ==
        Near(0.0179, 0.005));
  // By the second, three epochs: 368 s.
  CHECK(ToDollars(RentalCost(Second(367.17), DollarsPerHour(0.526), {})) ==
        Near(368.0 / 3600.0 * 0.526, 1e-12));
}

}  // namespace trainfare::model
