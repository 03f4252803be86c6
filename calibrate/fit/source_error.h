#pragma once

// What all runs of one source share, hosts and software: b ~ N(0, tau^2) of
// each. A fit has the mean of its k sources in it, so that of others, and of two
// of these together,
//
//   Cov(b_i - mean b_k, b_j - mean b_k) = tau^2 ([i = j] + 1 / k)
//
// and of its own sources what they differ by is in its residuals. Priors are of
// no source: 1 / k is 0. Check: tests/calibrate/fit/predictor_test.cc,
// docs/models/calibration.md, "Sources".

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainfare::calibrate {

class SourceError {
 public:
  SourceError() = default;
  // `tau` of log(time); `of_fit`: who measured what it was fitted to.
  SourceError(double tau, std::vector<std::string> of_fit)
      : tau_(tau), of_fit_(std::move(of_fit)) {}

  bool IsOfFit(std::string_view source) const {
    return std::find(of_fit_.begin(), of_fit_.end(), source) != of_fit_.end();
  }

  double Covariance(std::string_view a, std::string_view b) const {
    if (IsOfFit(a) || IsOfFit(b)) return 0.0;
    const double mean =
        of_fit_.empty() ? 0.0 : 1.0 / static_cast<double>(of_fit_.size());
    return tau_ * tau_ * ((a == b ? 1.0 : 0.0) + mean);
  }

 private:
  double tau_ = 0;
  std::vector<std::string> of_fit_;
};

}  // namespace trainfare::calibrate
