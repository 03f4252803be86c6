#include "scenarios/validation/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

using model::Seconds;

double MedianSeconds(const std::vector<Seconds<>>& times) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Seconds<> time : times) seconds.push_back(ToSeconds(time));
  return calibrate::Median(std::move(seconds));
}

}  // namespace

double Repeats::Spread() const {
  const auto [least, most] =
      std::minmax_element(measured.begin(), measured.end());
  return *most / *least - 1.0;
}

std::vector<double> Repeats::OwnErrors() const {
  std::vector<double> errors;
  if (measured.size() < 2) return errors;
  for (size_t i = 0; i < measured.size(); ++i) {
    std::vector<Seconds<>> others = measured;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    errors.push_back(
        std::abs(MedianSeconds(others) / ToSeconds(measured[i]) - 1.0));
  }
  return errors;
}

std::vector<Repeats> MergeRepeats(
    const std::vector<calibrate::Observation>& observations) {
  std::vector<Repeats> points;
  std::map<std::string, size_t> index;
  for (const calibrate::Observation& o : observations) {
    const auto [found, is_new] =
        index.emplace(fmt::format("{} on {} x {} {} {}",
                                  o.device_count,
                                  o.hosts,
                                  o.device,
                                  calibrate::Describe(o.workload),
                                  calibrate::ToText(o.quantity)),
                      points.size());
    if (is_new) points.push_back({o, {}});
    points[found->second].measured.push_back(o.measured);
  }
  for (Repeats& point : points) {
    point.middle.measured = model::Second(MedianSeconds(point.measured));
  }
  return points;
}

}  // namespace trainfare::scenarios
