#pragma once

// Order statistics and quantiles of a fit.

#include <cstdint>
#include <vector>

namespace trainfare::calibrate {

// The median of values in any order; the mean of the middle two when even.
// Throws std::logic_error when there are none.
double Median(std::vector<double> values);

// The value below which a share of `p` in [0, 1] lies, linear between order
// statistics (type 7 of Hyndman & Fan 1996).
double Percentile(std::vector<double> values, double p);

// Standard deviation from the median absolute deviation around `center`, so
// that a few outliers do not count: 1.4826 MAD, which is sigma for normal
// samples. 0 for fewer than two values.
double RobustDeviation(const std::vector<double>& values, double center);

// The noise of the median of `samples`, relative to it: 1.4826 MAD sqrt(pi / 2)
// / sqrt(n) over the median, the factor sqrt(pi / 2) being what a median loses
// against a mean for normal samples. 0 (unknown) for fewer than three samples.
double RelativeNoiseOfMedian(const std::vector<double>& samples);

// The value that a Student t variable stays below with probability 0.9: half
// the width of an 80 % interval in standard deviations.
double StudentQuantile90(int64_t degrees_of_freedom);
// The same with probability 0.975: half the width of a 95 % interval.
double StudentQuantile975(int64_t degrees_of_freedom);
// The same of a normal variable, which Student's tends to.
inline constexpr double kNormalQuantile90 = 1.2815515655446004;
inline constexpr double kNormalQuantile975 = 1.959963984540054;

}  // namespace trainfare::calibrate
