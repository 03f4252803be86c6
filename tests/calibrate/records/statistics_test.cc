#include "calibrate/records/statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

TEST_CASE("the median is the middle one, or between the middle two") {
  CHECK(Median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(Median({4.0, 1.0, 2.0, 3.0}) == 2.5);
  CHECK(Median({7.0}) == 7.0);
  CHECK_THROWS_AS(Median({}), std::logic_error);
}

TEST_CASE("percentiles lie linearly between order statistics") {
  const std::vector<double> values = {10.0, 20.0, 30.0, 40.0, 50.0};
  CHECK(Percentile(values, 0.0) == 10.0);
  CHECK(Percentile(values, 0.9) == Near(46.0, 1e-12));
  CHECK(Percentile(values, 1.0) == 50.0);
}

TEST_CASE("one outlier does not move the robust deviation") {
  // Deviations from 10: 1, 0, 1, 1, 90; their median is 1.
  CHECK(RobustDeviation({9.0, 10.0, 11.0, 9.0, 100.0}, 10.0) ==
        Near(1.4826, 1e-5));
  CHECK(RobustDeviation({9.0}, 10.0) == 0.0);
}

TEST_CASE("noise of a median, by hand") {
  // Median 10, MAD 1: 1.4826 x 1.2533 / sqrt(5) / 10 = 0.0831.
  CHECK(RelativeNoiseOfMedian({9.0, 10.0, 11.0, 9.0, 100.0}) ==
        Near(0.083101, 1e-4));
  CHECK(RelativeNoiseOfMedian({9.0, 10.0}) == 0.0);
}

TEST_CASE("Student quantiles agree with printed tables") {
  // Abramowitz & Stegun 1964, table 26.10, A = 0.8.
  struct Row {
    int64_t degrees_of_freedom;
    double quantile;
  };
  for (const Row row : {Row{1, 3.078},
                        Row{2, 1.886},
                        Row{3, 1.638},
                        Row{4, 1.533},
                        Row{10, 1.372},
                        Row{30, 1.310},
                        Row{120, 1.289}}) {
    CAPTURE(row.degrees_of_freedom);
    CHECK(std::abs(StudentQuantile90(row.degrees_of_freedom) - row.quantile) <
          0.001);
  }
  // A = 0.95.
  CHECK(std::abs(StudentQuantile975(1) - 12.706) < 0.001);
  CHECK(std::abs(StudentQuantile975(10) - 2.228) < 0.001);
  CHECK(std::abs(StudentQuantile975(1'000'000) - kNormalQuantile975) < 0.001);
  CHECK(std::abs(StudentQuantile90(1'000'000) - kNormalQuantile90) < 0.001);
}

}  // namespace
}  // namespace trainfare::calibrate
