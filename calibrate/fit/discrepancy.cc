#include "calibrate/fit/discrepancy.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "calibrate/records/observation.h"
#include "calibrate/records/statistics.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

// A residual this many robust deviations from the median is of a disturbed run.
constexpr double kOutlier = 5.0;
// Fewer runs say nothing of a formula's error that its parameters do not.
constexpr std::size_t kLeastRuns = 4;

constexpr std::array kErrorSizes = {0.0, 0.02, 0.04, 0.07, 0.12, 0.2};
constexpr std::array kNoises = {0.01, 0.02, 0.04, 0.07, 0.12};

}  // namespace

struct Discrepancy::State {
  std::vector<ErrorPoint> points;
  std::vector<Eigen::Index> row_of;  // of a residual given; -1: does not count
  Eigen::VectorXd residuals;
  Eigen::VectorXd weights;  // A^-1 r
  Eigen::MatrixXd inverse;  // A^-1
  double error_size = 0;
  double noise = 0;

  // d(x) over s^2.
  Eigen::VectorXd CorrelationsAt(const Place& place) const {
    const ErrorPoint at = ErrorPointOf(place);
    Eigen::VectorXd correlations(static_cast<Eigen::Index>(points.size()));
    for (std::size_t i = 0; i < points.size(); ++i) {
      correlations[static_cast<Eigen::Index>(i)] =
          ErrorCorrelation(at, points[i]);
    }
    return correlations;
  }
};

Place PlaceOf(const model::Workload& workload) {
  const model::Architecture& a = workload.architecture;
  return {workload.batch,
          workload.sequence_length,
          a.hidden,
          a.blocks(),
          SettingsOf(workload)};
}

Place PlaceOf(const model::Workload& workload, const hardware::Device& device) {
  Place place = PlaceOf(workload);
  if (workload.power_limit.base() > 0.0 && device.max_power &&
      workload.power_limit < *device.max_power) {
    place.power_share = workload.power_limit / *device.max_power;
  }
  return place;
}

ErrorPoint ErrorPointOf(const Place& place) {
  const auto log_of = [](int64_t value) {
    return std::log(static_cast<double>(value)) / std::log(kErrorReach);
  };
  // Time goes with the hidden size squared.
  return {{log_of(place.batch),
           log_of(place.sequence_length),
           2.0 * log_of(place.hidden),
           log_of(place.layers),
           std::log(place.power_share.value_or(1.0)) / std::log(kPowerReach)},
          place.settings};
}

double SettingsCorrelation(const ErrorPoint& a, const ErrorPoint& b) {
  return a.settings == b.settings ? 1.0 : kOtherSettings;
}

double ErrorCorrelation(const ErrorPoint& a, const ErrorPoint& b) {
  double squared = 0;
  for (std::size_t i = 0; i < a.coordinates.size(); ++i) {
    const double apart = a.coordinates[i] - b.coordinates[i];
    squared += apart * apart;
  }
  return std::exp(-0.5 * squared) * SettingsCorrelation(a, b);
}

Discrepancy::Discrepancy() : state_(std::make_unique<State>()) {}
Discrepancy::~Discrepancy() = default;
Discrepancy::Discrepancy(const Discrepancy& other)
    : state_(std::make_unique<State>(*other.state_)) {}
Discrepancy& Discrepancy::operator=(const Discrepancy& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Discrepancy::Discrepancy(Discrepancy&&) noexcept = default;
Discrepancy& Discrepancy::operator=(Discrepancy&&) noexcept = default;

Discrepancy::Discrepancy(std::vector<Place> places,
                         const std::vector<double>& residuals)
    : state_(std::make_unique<State>()) {
  ENSURE(places.size() == residuals.size(), "one residual a place");
  State& s = *state_;
  s.row_of.assign(residuals.size(), -1);
  if (residuals.size() < kLeastRuns) return;
  const double centre = Median(residuals);
  const double deviation =
      std::max(RobustDeviation(residuals, centre), kNoises.front());
  std::vector<double> kept;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (std::abs(residuals[i] - centre) > kOutlier * deviation) continue;
    s.row_of[i] = static_cast<Eigen::Index>(kept.size());
    kept.push_back(residuals[i]);
    s.points.push_back(ErrorPointOf(places[i]));
  }
  const auto count = static_cast<Eigen::Index>(kept.size());
  s.residuals = Eigen::Map<const Eigen::VectorXd>(kept.data(), count);
  Eigen::MatrixXd correlation(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      correlation(i, j) =
          ErrorCorrelation(s.points[static_cast<std::size_t>(i)],
                           s.points[static_cast<std::size_t>(j)]);
    }
  }

  const auto covariance = [&](double error_size, double noise) {
    Eigen::MatrixXd a = error_size * error_size * correlation;
    a.diagonal().array() += noise * noise;
    return a;
  };
  double best = -std::numeric_limits<double>::infinity();
  for (const double error_size : kErrorSizes) {
    for (const double noise : kNoises) {
      const Eigen::LLT<Eigen::MatrixXd> factor(covariance(error_size, noise));
      if (factor.info() != Eigen::Success) continue;
      const Eigen::MatrixXd lower = factor.matrixL();
      const double log_likelihood =
          -0.5 * s.residuals.dot(factor.solve(s.residuals)) -
          lower.diagonal().array().log().sum();
      if (log_likelihood > best) {
        best = log_likelihood;
        s.error_size = error_size;
        s.noise = noise;
      }
    }
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance(s.error_size, s.noise));
  s.inverse = factor.solve(Eigen::MatrixXd::Identity(count, count));
  s.weights = s.inverse * s.residuals;
}

bool Discrepancy::empty() const { return state_->points.empty(); }

double Discrepancy::MeanAt(const Place& place) const {
  const State& s = *state_;
  if (empty() || s.error_size == 0) return 0;
  return s.error_size * s.error_size * s.CorrelationsAt(place).dot(s.weights);
}

Correction Discrepancy::At(const Place& place) const {
  const State& s = *state_;
  if (empty() || s.error_size == 0) return {};
  const double size = s.error_size * s.error_size;
  const Eigen::VectorXd d = size * s.CorrelationsAt(place);
  return {d.dot(s.weights), std::max(0.0, size - d.dot(s.inverse * d))};
}

double Discrepancy::LeftOutMean(std::size_t i) const {
  const State& s = *state_;
  ENSURE(i < s.row_of.size(), "a run of the fit");
  const Eigen::Index row = s.row_of[i];
  if (row < 0) return 0;
  return s.residuals[row] - s.weights[row] / s.inverse(row, row);
}

double Discrepancy::error_size() const { return state_->error_size; }
double Discrepancy::noise() const { return state_->noise; }

}  // namespace trainfare::calibrate
