#include "calibrate/fit/ring_fit.h"

#include <cmath>

#include "calibrate/fit/fit.h"
#include "model/error.h"

namespace trainfare::calibrate {

// The formula is linear in a and u = 1/B, so that the sum of squares is least
// at the solution of its two normal equations, or on the bound a = 0.
RingFit FitRing(const std::vector<TimedAllReduce>& times) {
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
  const bool on_bound = latency < 0;
  if (on_bound) {
    latency = 0;
    inverse = y_sum / yy;
  }
  if (!(inverse > 0)) {
    throw model::InputError(
        "all-reduces: expected times that grow with the size");
  }
  RingFit fit;
  fit.ring = {model::Second(latency), model::BytesPerSecond<>(1.0 / inverse)};
  double squares = 0;
  for (const TimedAllReduce& one : times) {
    const double residual =
        1.0 - model::RingAllReduceTime(
                  one.ranks, one.size, fit.ring.step_latency, fit.ring.link) /
                  one.time;
    squares += residual * residual;
  }
  const double freedom =
      static_cast<double>(times.size()) - (on_bound ? 1.0 : 2.0);
  fit.scatter = ScatterWithPrior(squares, freedom, FitOptions().model_sigma);
  if (on_bound) {
    fit.link_error = fit.scatter / std::sqrt(yy) / inverse;
    return fit;
  }
  fit.latency_error = model::Second(fit.scatter * std::sqrt(yy / determinant));
  fit.link_error = fit.scatter * std::sqrt(xx / determinant) / inverse;
  fit.correlation = -xy / std::sqrt(xx * yy);
  return fit;
}

}  // namespace trainfare::calibrate
