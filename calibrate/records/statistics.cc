#include "calibrate/records/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numbers>

#include "model/error.h"

namespace trainfare::calibrate {
namespace {

constexpr double kMadToSigma = 1.4826022185056018;  // 1 / z(0.75)

}  // namespace

double Percentile(std::vector<double> values, double p) {
  ENSURE(!values.empty(), "percentile of nothing");
  std::sort(values.begin(), values.end());
  const double position = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, values.size() - 1);
  const double share = position - std::floor(position);
  return values[below] + share * (values[above] - values[below]);
}

double Median(std::vector<double> values) {
  return Percentile(std::move(values), 0.5);
}

double RobustDeviation(const std::vector<double>& values, double center) {
  if (values.size() < 2) return 0.0;
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) {
    deviations.push_back(std::abs(value - center));
  }
  return kMadToSigma * Median(std::move(deviations));
}

double RelativeNoiseOfMedian(const std::vector<double>& samples) {
  if (samples.size() < 3) return 0.0;
  const double median = Median(samples);
  const double lost = std::sqrt(std::numbers::pi / 2.0);
  return RobustDeviation(samples, median) * lost /
         std::sqrt(static_cast<double>(samples.size())) / median;
}

namespace {

double StudentQuantile(int64_t degrees_of_freedom, double probability) {
  ENSURE(degrees_of_freedom >= 1, "degrees of freedom");
  return boost::math::quantile(boost::math::students_t_distribution<double>(
                                   static_cast<double>(degrees_of_freedom)),
                               probability);
}

}  // namespace

double StudentQuantile90(int64_t degrees_of_freedom) {
  return StudentQuantile(degrees_of_freedom, 0.9);
}

double StudentQuantile975(int64_t degrees_of_freedom) {
  return StudentQuantile(degrees_of_freedom, 0.975);
}

}  // namespace trainfare::calibrate
