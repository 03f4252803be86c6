#pragma once

// Equal but for rounding, or within a share of the larger of both. doctest's own
// Approx adds 1 to that, by which all that is small is equal.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <ostream>

namespace trainfare {

// A number that another is compared with.
class NearNumber {
 public:
  NearNumber(double value, double relative, double absolute)
      : value_(value), relative_(relative), absolute_(absolute) {}

  template <std::convertible_to<double> T>
  friend bool operator==(const T& other, const NearNumber& near) {
    const auto number = static_cast<double>(other);
    const double larger = std::max(std::abs(number), std::abs(near.value_));
    return std::abs(number - near.value_) <=
           std::max(near.relative_ * larger, near.absolute_);
  }
  friend std::ostream& operator<<(std::ostream& out, const NearNumber& near) {
    return out << "about " << near.value_;
  }

 private:
  double value_;
  double relative_;
  double absolute_;
};

// `absolute`: what rounding leaves where both are next to nothing.
inline NearNumber Near(double value,
                       double relative = 1e-9,
                       double absolute = 0.0) {
  return {value, relative, absolute};
}

}  // namespace trainfare
