#include "model/energy.h"

#include <doctest/doctest.h>

namespace trainfare::model {

TEST_CASE("power is linear between idle and the limit") {
  // 40 W + (300 W - 40 W) x 0.6 = 196 W; over 50 s 9800 J.
  CHECK(ToWatts(MeanPower(Watt(40.0), Watt(300.0), 0.6)) ==
        doctest::Approx(196.0).epsilon(1e-12));
  CHECK(ToJoules(Energy(Watt(40.0), Watt(300.0), 0.6, Second(50.0))) ==
        doctest::Approx(9800.0).epsilon(1e-12));
  CHECK(MeanPower(Watt(40.0), Watt(300.0), 0.0) == Watt(40.0));
  CHECK(MeanPower(Watt(40.0), Watt(300.0), 1.0) == Watt(300.0));
}

TEST_CASE("a share beyond 1 is a defect") {
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), 1.01), std::logic_error);
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), -0.1), std::logic_error);
}

}  // namespace trainfare::model
