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

TEST_CASE("two kinds of work draw different power") {
  // 56 W + (225 W - 56 W) x 0.6 + (180 W - 56 W) x 0.3 = 194.6 W.
  const PowerLevels levels{Watt(56.0), Watt(225.0), Watt(180.0)};
  CHECK(ToWatts(MeanPower(levels, 0.6, 0.3)) ==
        doctest::Approx(194.6).epsilon(1e-12));
  CHECK(MeanPower(levels, 0.0, 0.0) == Watt(56.0));
  CHECK(ToWatts(MeanPower(levels, 1.0, 0.0)) == doctest::Approx(225.0));
  CHECK(ToWatts(MeanPower(levels, 0.0, 1.0)) == doctest::Approx(180.0));
  CHECK_THROWS_AS(MeanPower(levels, 0.7, 0.4), std::logic_error);
  CHECK_THROWS_AS(MeanPower(levels, -0.1, 0.4), std::logic_error);
}

TEST_CASE("work costs by the operation and the byte") {
  // docs/models/energy.md: 60 W x 100 s + 16.5 pJ x 500 TFLOP + 4 pJ x 200
  // TFLOP
  // + 85 pJ x 10 TB = 6000 + 8250 + 800 + 850 J.
  const WorkCosts<double> costs{Watt(60.0),
                                JoulesPerFlop<>(16.5e-12),
                                JoulesPerFlop<>(4e-12),
                                JoulesPerByte<>(85e-12)};
  const WorkDone work{Second(100.0), Flop(500e12), Flop(200e12), Byte(10e12)};
  CHECK(ToJoules(EnergyOf(costs, work)) ==
        doctest::Approx(15'900.0).epsilon(1e-12));
  // The same work in twice the time costs what rest costs more.
  WorkDone slow = work;
  slow.time = Second(200.0);
  CHECK(ToJoules(EnergyOf(costs, slow) - EnergyOf(costs, work)) ==
        doctest::Approx(6000.0).epsilon(1e-12));
}

TEST_CASE("a share beyond 1 is a defect") {
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), 1.01), std::logic_error);
  CHECK_THROWS_AS(MeanPower(Watt(40.0), Watt(300.0), -0.1), std::logic_error);
}

}  // namespace trainfare::model
