#include "calibrate/fit/discrepancy.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "calibrate/fit/low_rank.h"
#include "calibrate/fit/process_likelihood.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/rounding.h"

namespace trainfare::calibrate {

// Residuals of runs, those of one place as one row.
struct GroupedResiduals {
  std::vector<ErrorPoint> points;    // of each place
  std::vector<Eigen::Index> row_of;  // of each run; -1: does not count
  Eigen::VectorXd means;             // of each place's residuals
  Eigen::VectorXd counts;            // of its runs
  double squares = 0;                // of residuals less their place's mean

  Eigen::Index places() const { return means.size(); }
  Eigen::Index runs() const { return std::lround(counts.sum()); }
  // y.
  Eigen::VectorXd Values() const { return means.cwiseProduct(Roots()); }
  Eigen::VectorXd Roots() const { return counts.cwiseSqrt(); }
};

namespace {

// A residual this many robust deviations from the median is of a disturbed run.
constexpr double kOutlier = 5.0;
// Fewer runs say nothing of a formula's error that its parameters do not.
constexpr std::size_t kLeastRuns = 4;

constexpr std::array kErrorSizes = {0.0, 0.02, 0.04, 0.07, 0.12, 0.2};
constexpr std::array kNoises = {0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.3};

// An order in which equal places stand together.
struct ByFields {
  bool operator()(const Place& a, const Place& b) const {
    const auto key = [](const Place& p) {
      return std::tie(p.batch,
                      p.sequence_length,
                      p.hidden,
                      p.layers,
                      p.settings,
                      p.power_share);
    };
    return key(a) < key(b);
  }
};

GroupedResiduals Grouped(const std::vector<Place>& places,
                         const std::vector<double>& residuals) {
  GroupedResiduals grouped;
  grouped.row_of.assign(residuals.size(), -1);
  if (residuals.size() < kLeastRuns) return grouped;
  const double centre = Median(residuals);
  const double deviation =
      std::max(RobustDeviation(residuals, centre), kNoises.front());
  std::map<Place, Eigen::Index, ByFields> rows;
  std::vector<std::vector<double>> of_row;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (std::abs(residuals[i] - centre) > kOutlier * deviation) continue;
    const auto [row, is_new] =
        rows.try_emplace(places[i], static_cast<Eigen::Index>(of_row.size()));
    if (is_new) {
      of_row.emplace_back();
      grouped.points.push_back(ErrorPointOf(places[i]));
    }
    grouped.row_of[i] = row->second;
    of_row[static_cast<std::size_t>(row->second)].push_back(residuals[i]);
  }
  grouped.means.resize(static_cast<Eigen::Index>(of_row.size()));
  grouped.counts.resize(grouped.means.size());
  for (Eigen::Index row = 0; row < grouped.places(); ++row) {
    const std::vector<double>& own = of_row[static_cast<std::size_t>(row)];
    const Eigen::Map<const Eigen::ArrayXd> values(
        own.data(), static_cast<Eigen::Index>(own.size()));
    grouped.means[row] = values.mean();
    grouped.counts[row] = static_cast<double>(own.size());
    grouped.squares += (values - grouped.means[row]).square().sum();
  }
  return grouped;
}

// B.
LowRank CorrelationOf(const GroupedResiduals& grouped) {
  const Eigen::VectorXd roots = grouped.Roots();
  const auto point = [&](Eigen::Index i) -> const ErrorPoint& {
    return grouped.points[static_cast<std::size_t>(i)];
  };
  return IncompleteCholesky(
      grouped.places(), [&](Eigen::Index i, Eigen::Index j) {
        return roots[i] * roots[j] * ErrorCorrelation(point(i), point(j));
      });
}

}  // namespace

struct Discrepancy::State {
  std::vector<double> residuals;
  GroupedResiduals grouped;
  double error_size = 0;
  double noise = 0;
  LowRankInverse inverse;   // of s^2 B + n^2 I
  Eigen::VectorXd solved;   // that times y
  Eigen::VectorXd weights;  // of the places' correlations: A^-1 r

  // d(x) over s^2, of each place.
  Eigen::VectorXd CorrelationsAt(const Place& place) const {
    const ErrorPoint at = ErrorPointOf(place);
    Eigen::VectorXd correlations(grouped.places());
    for (Eigen::Index i = 0; i < correlations.size(); ++i) {
      correlations[i] =
          ErrorCorrelation(at, grouped.points[static_cast<std::size_t>(i)]);
    }
    return correlations;
  }
  void ChooseSizes(const LowRank& correlation);
};

Place PlaceOf(const model::Workload& workload) {
  const model::Architecture& a = workload.architecture;
  const model::Parallel& p = workload.parallel;
  // Of a model that ranks divide, one as wide and deep as a rank's part, as
  // which it may be asked about (model::OfStage).
  const int64_t ranks = std::max(p.tensor, workload.part.tensor);
  const int64_t hidden =
      ranks == 1 ? a.hidden
                 : std::llround(static_cast<double>(a.hidden) /
                                std::sqrt(static_cast<double>(ranks)));
  return {workload.batch,
          model::CeilDivide(workload.sequence_length, p.context),
          hidden,
          model::CeilDivide(a.blocks(), p.pipeline),
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

double InReaches(int64_t size) {
  return std::log(static_cast<double>(size)) /
         std::log(hardware::FactsOfErrors().reach);
}

ErrorPoint ErrorPointOf(const Place& place) {
  // Time goes with the hidden size squared.
  return {{InReaches(place.batch),
           InReaches(place.sequence_length),
           2.0 * InReaches(place.hidden),
           InReaches(place.layers),
           std::log(place.power_share.value_or(1.0)) /
               std::log(hardware::FactsOfErrors().power_reach)},
          place.settings};
}

double SettingsCorrelation(const ErrorPoint& a, const ErrorPoint& b) {
  return a.settings == b.settings ? 1.0
                                  : hardware::FactsOfErrors().other_settings;
}

double SquaredDistance(const ErrorPoint& a, const ErrorPoint& b) {
  double squared = 0;
  for (std::size_t i = 0; i < a.coordinates.size(); ++i) {
    const double apart = a.coordinates[i] - b.coordinates[i];
    squared += apart * apart;
  }
  return squared;
}

double ErrorCorrelation(const ErrorPoint& a, const ErrorPoint& b) {
  return std::exp(-0.5 * SquaredDistance(a, b)) * SettingsCorrelation(a, b);
}

Discrepancy::Discrepancy() : state_(std::make_shared<State>()) {}

// The pair of the grid with the greatest marginal likelihood of all runs.
void Discrepancy::State::ChooseSizes(const LowRank& correlation) {
  const ProcessLikelihood likelihood(correlation, grouped.Values());
  const auto others = static_cast<double>(grouped.runs() - grouped.places());
  double best = -std::numeric_limits<double>::infinity();
  for (const double size : kErrorSizes) {
    for (const double scatter : kNoises) {
      const double of_all = likelihood.LogAt(size, scatter) -
                            0.5 * grouped.squares / (scatter * scatter) -
                            others * std::log(scatter);
      if (of_all > best) {
        best = of_all;
        error_size = size;
        noise = scatter;
      }
    }
  }
}

Discrepancy::Discrepancy(const std::vector<Place>& places,
                         std::vector<double> residuals) {
  ENSURE(places.size() == residuals.size(), "one residual a place");
  const auto state = std::make_shared<State>();
  state_ = state;
  State& s = *state;
  s.grouped = Grouped(places, residuals);
  s.residuals = std::move(residuals);
  if (empty()) return;
  LowRank correlation = CorrelationOf(s.grouped);
  s.ChooseSizes(correlation);
  s.inverse = LowRankInverse(std::move(correlation), s.error_size, s.noise);
  s.solved = s.inverse.Solve(s.grouped.Values());
  s.weights = s.grouped.Roots().cwiseProduct(s.solved);
}

bool Discrepancy::empty() const { return state_->grouped.points.empty(); }

double Discrepancy::MeanAt(const Place& place) const {
  const State& s = *state_;
  if (empty() || s.error_size == 0) return 0;
  return s.error_size * s.error_size * s.CorrelationsAt(place).dot(s.weights);
}

Correction Discrepancy::At(const Place& place) const {
  const State& s = *state_;
  if (empty() || s.error_size == 0) return {};
  const double size = s.error_size * s.error_size;
  const Eigen::VectorXd correlations = s.CorrelationsAt(place);
  const Eigen::VectorXd scaled = correlations.cwiseProduct(s.grouped.Roots());
  return {size * correlations.dot(s.weights),
          s.inverse.VarianceAt(1.0, scaled(s.inverse.pivots()))};
}

std::vector<double> Discrepancy::LeftOutMeans() const {
  const State& s = *state_;
  std::vector<double> left_out(s.residuals.size(), 0.0);
  if (empty() || s.error_size == 0) return left_out;
  const GroupedResiduals& grouped = s.grouped;
  const Eigen::VectorXd inverse = s.inverse.Diagonal();
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    const Eigen::Index row = grouped.row_of[i];
    if (row < 0) continue;
    // Turned back: (A^-1 r)_i and (A^-1)_ii.
    const double count = grouped.counts[row];
    const double precision = 1.0 / (s.noise * s.noise);
    const double weight = s.solved[row] / std::sqrt(count) +
                          (s.residuals[i] - grouped.means[row]) * precision;
    const double own = inverse[row] / count + (1.0 - 1.0 / count) * precision;
    left_out[i] = s.residuals[i] - weight / own;
  }
  return left_out;
}

double Discrepancy::error_size() const { return state_->error_size; }
double Discrepancy::noise() const { return state_->noise; }

}  // namespace trainfare::calibrate
