#include "model/energy.h"

#include <doctest/doctest.h>

#include "tests/near.h"

namespace trainfare::model {

TEST_CASE("power is linear between idle and the limit") {
  // 40 W + (300 W - 40 W) x 0.6 = 196 W; over 50 s 9800 J.
  CHECK(ToWatts(MeanPower(Watt(40.0), Watt(300.0), 0.6)) == Near(196.0, 1e-12));
  CHECK(ToJoules(Energy(Watt(40.0), Watt(300.0), 0.6, Second(50.0))) ==
        Near(9800.0, 1e-12));
  CHECK(MeanPower(Watt(40.0), Watt(300.0), 0.0) == Watt(40.0));
  CHECK(MeanPower(Watt(40.0), Watt(300.0), 1.0) == Watt(300.0));
}

TEST_CASE("two kinds of work draw different power") {
  // 56 W + (242 W - 56 W) x 0.6 + (180 W - 56 W) x 0.3 = 204.8 W.
  const PowerLevels levels{Watt(56.0), Watt(242.0), Watt(180.0)};
  CHECK(ToWatts(MeanPower(levels, 0.6, 0.3)) == Near(204.8, 1e-12));
  CHECK(MeanPower(levels, 0.0, 0.0) == Watt(56.0));
  CHECK(ToWatts(MeanPower(levels, 1.0, 0.0)) == Near(242.0, 1e-5));
  CHECK(ToWatts(MeanPower(levels, 0.0, 1.0)) == Near(180.0, 1e-5));
  CHECK_THROWS_AS(MeanPower(levels, 0.7, 0.4), std::logic_error);
  CHECK_THROWS_AS(MeanPower(levels, -0.1, 0.4), std::logic_error);
}

TEST_CASE("a share beyond 1 is a defect") {
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), 1.01), std::logic_error);
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), -0.1), std::logic_error);
}

}  // namespace trainfare::model
