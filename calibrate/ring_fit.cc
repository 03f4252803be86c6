#include "calibrate/ring_fit.h"

#include "model/error.h"

namespace trainfare::calibrate {

// The formula is linear in a and 1/B. With x = 2 (n - 1) / t and
// y = 2 (n - 1) S / (n t), the sum of (1 - x a - y / B)^2 is least at the
// solution of its two normal equations, or on the bound a = 0.
model::RingLevel<double> FitRing(const std::vector<TimedAllReduce>& times) {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double x_sum = 0;
  double y_sum = 0;
  for (const TimedAllReduce& one : times) {
    if (one.ranks < 2 || !(one.time.base() > 0) || !(one.size.base() > 0)) {
      throw model::InputError(
          "all-reduces: expected two ranks and more, positive sizes and times");
    }
    const auto ranks = static_cast<double>(one.ranks);
    const double x = 2.0 * (ranks - 1.0) / one.time.base();
    const double y = x * one.size.base() / ranks;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x_sum += x;
    y_sum += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (!(determinant > 1e-9 * xx * yy)) {
    throw model::InputError(
        "all-reduces: expected two different sizes and more: one size does "
        "not tell latency from bandwidth");
  }
  double latency = (yy * x_sum - xy * y_sum) / determinant;
  double inverse = (xx * y_sum - xy * x_sum) / determinant;
  if (latency < 0) {
    latency = 0;
    inverse = y_sum / yy;
  }
  if (!(inverse > 0)) {
    throw model::InputError(
        "all-reduces: expected times that grow with the size");
  }
  return {model::Second(latency), model::BytesPerSecond<>(1.0 / inverse)};
}

}  // namespace trainfare::calibrate
