#include "calibrate/fit/added_runs.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/fit/fit_positions.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/low_rank.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/process_likelihood.h"
#include "calibrate/fit/step_model.h"
#include "hardware/catalog/parameter.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/parallel.h"
#include "model/split.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// Of fewer rows none tells its error from its noise.
constexpr std::size_t kLeastRows = 4;
// Of these, times what is believed before, the likeliest are taken.
constexpr std::array kTimesError = {0.5, 1.0, 2.0, 4.0};
constexpr std::array kTimesNoise = {0.5, 1.0, 2.0, 4.0};
constexpr std::array kTimesNearness = {1.0, 2.0};

}  // namespace

// What the rows say of the process, over what is believed before.
struct AddedSizes {
  double error = 1;
  double noise = 1;
  double nearness = 1;  // one over the reach

  // log of what is believed of it: each doubling or halving is 1 / e as likely.
  double LogPrior() const {
    return -std::abs(std::log2(error)) - std::abs(std::log2(noise)) -
           std::abs(std::log2(nearness));
  }
};

struct AddedRuns::State {
  // A place, and how many ranks have the same part of a model.
  struct Point {
    ErrorPoint place;
    double ranks = 0;  // their logarithm in units of the reach

    Point(const Place& of, int64_t count)
        : place(ErrorPointOf(of)),
          ranks(InReaches(std::max<int64_t>(count, 1))) {}

    double CorrelationWith(const Point& other, double nearness) const {
      const double apart = SquaredDistance(place, other.place) +
                           (ranks - other.ranks) * (ranks - other.ranks);
      return SettingsCorrelation(place, other.place) *
             std::exp(-0.5 * nearness * nearness * apart);
    }
  };

  std::vector<Point> points;
  AddedSizes sizes;
  LowRankInverse inverse;   // of A
  Eigen::VectorXd weights;  // A^-1 r

  double size() const { return sizes.error * kDatasheetScatter; }
  double noise() const { return sizes.noise * kAddedNoise; }

  LowRank Correlation(double nearness) const {
    const auto point = [&](Eigen::Index i) -> const Point& {
      return points[static_cast<size_t>(i)];
    };
    return IncompleteCholesky(static_cast<Eigen::Index>(points.size()),
                              [&](Eigen::Index i, Eigen::Index j) {
                                return point(i).CorrelationWith(point(j),
                                                                nearness);
                              });
  }

  // The likeliest after the rows' residuals r.
  AddedSizes SizesBy(const Eigen::VectorXd& r) const {
    if (points.size() < kLeastRows) return {};
    AddedSizes best;
    double best_log = -std::numeric_limits<double>::infinity();
    for (const double nearness : kTimesNearness) {
      const ProcessLikelihood likelihood(Correlation(nearness), r);
      for (const double error : kTimesError) {
        for (const double noise : kTimesNoise) {
          const AddedSizes candidate{error, noise, nearness};
          const double log_posterior =
              candidate.LogPrior() +
              likelihood.LogAt(error * kDatasheetScatter, noise * kAddedNoise);
          if (log_posterior > best_log) {
            best_log = log_posterior;
            best = candidate;
          }
        }
      }
    }
    return best;
  }
};

AddedRuns::AddedRuns() : state_(std::make_unique<State>()) {}
AddedRuns::~AddedRuns() = default;
AddedRuns::AddedRuns(const AddedRuns& other)
    : state_(std::make_unique<State>(*other.state_)) {}
AddedRuns& AddedRuns::operator=(const AddedRuns& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
AddedRuns::AddedRuns(AddedRuns&&) noexcept = default;
AddedRuns& AddedRuns::operator=(AddedRuns&&) noexcept = default;

AddedRuns::AddedRuns(const std::vector<FittedRun>& runs,
                     const std::function<double(const FittedRun&)>& known)
    : AddedRuns() {
  State& s = *state_;
  std::vector<double> residuals;
  for (const FittedRun& run : runs) {
    if (!run.added || !run.place) continue;
    s.points.emplace_back(*run.place, run.ranks);
    residuals.push_back(std::log(run.modelled / run.measured) - known(run));
  }
  if (s.points.empty()) return;
  const Eigen::VectorXd r = Eigen::Map<const Eigen::VectorXd>(
      residuals.data(), static_cast<Eigen::Index>(residuals.size()));
  s.sizes = s.SizesBy(r);
  s.inverse =
      LowRankInverse(s.Correlation(s.sizes.nearness), s.size(), s.noise());
  s.weights = s.inverse.Solve(r);
}

bool AddedRuns::empty() const { return state_->points.empty(); }

double AddedRuns::noise() const { return state_->noise(); }

Correction AddedRuns::At(const model::Workload& workload,
                         const hardware::Device& device) const {
  if (empty()) return {0, 1};
  const State& s = *state_;
  const State::Point at(PlaceOf(workload, device), workload.parallel.data);
  Eigen::VectorXd correlations(static_cast<Eigen::Index>(s.points.size()));
  for (size_t i = 0; i < s.points.size(); ++i) {
    correlations[static_cast<Eigen::Index>(i)] =
        at.CorrelationWith(s.points[i], s.sizes.nearness);
  }
  const double open =
      s.inverse.VarianceAt(1.0, correlations(s.inverse.pivots())) /
      (kDatasheetScatter * kDatasheetScatter);
  return {s.size() * s.size() * correlations.dot(s.weights),
          std::clamp(open, 0.0, 1.0)};
}

namespace {

// The formula's time at the fit's parameters, of a whole step.
class Formula {
 public:
  Formula(const hardware::Device& device, const Fit& fit)
      : device_(fit.measured_device.value_or(device)),
        positions_(PositionsOf(fit)),
        joined_from_(positions_.size()) {
    for (const hardware::ParameterInfo& info :
         JoinedParameters(device_.kind, 1.0)) {
      double value = info.prior;
      for (const FittedParameter& of_fit : fit.joined) {
        if (of_fit.name == info.name) value = of_fit.value;
      }
      positions_.push_back(ToFitScale(info, value));
    }
  }

  // nullopt: not over links that are known.
  std::optional<model::Seconds<>> Time(const Observation& o) const {
    const bool alone =
        o.device_count == 1 && !model::Offloads(o.workload.parallel);
    if (alone) {
      return TimeOf(
          StepModel(device_, o.workload)
              .EvaluateValues(std::span(positions_).first(joined_from_)));
    }
    const std::optional<JoinedDevices> joined = FittableOver(device_, o);
    if (!joined) return std::nullopt;
    return TimeOf(JoinedModel(device_, o.workload, *joined, joined_from_)
                      .EvaluateValues(positions_));
  }

 private:
  static model::Seconds<> TimeOf(const LogTimes& times) {
    return model::Second(std::exp(times[Quantity::kStep]));
  }

  hardware::Device device_;
  std::vector<double> positions_;
  size_t joined_from_;
};

// Ranks of the run that have the same part of a model, or all of it, as a
// rank's workload is asked about.
int64_t RanksAlike(const Observation& o) {
  model::Workload over = o.workload;
  over.parallel = model::OverDevices(o.workload.parallel, o.device_count);
  return std::max<int64_t>(model::OfStage(over, 0).parallel.data, 1);
}

// Where among the runs that very measurement is already, as a file may be given
// twice, and a row may stand in one twice; their number: nowhere.
size_t PlaceAmong(const std::vector<FittedRun>& runs, const Observation& o) {
  const std::string workload = Describe(o.workload);
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const FittedRun& run) {
        return run.added && run.label == o.label && run.workload == workload &&
               run.devices == o.device_count && run.hosts == o.hosts &&
               run.measured == o.measured;
      });
  return static_cast<size_t>(found - runs.begin());
}

// Adds measurements to a fit, as its formula has them, and counts those that
// are none of it by why.
class Adder {
 public:
  Adder(const hardware::Device& device,
        Fit fit,
        const std::vector<Observation>& observations)
      : device_(device),
        formula_(device, fit),
        at_hand_(fit.runs.size()),
        fit_(std::move(fit)) {
    for (const Observation& o : observations) {
      if (o.quantity == Quantity::kStep) wholes_.insert(o.label);
    }
  }

  void Add(const Observation& o) {
    if (!IsDevice(device_, o.device)) {
      ++left_out_[WhyOfAnother(o.device)];
      return;
    }
    if (o.quantity != Quantity::kStep) {
      if (!wholes_.contains(o.label)) ++left_out_[kNoWholeStep];
      return;
    }
    const std::optional<model::Seconds<>> modelled = formula_.Time(o);
    if (!modelled) {
      ++left_out_[kOverUnknownLinks];
      return;
    }
    any_usable_ = true;
    const size_t place = PlaceAmong(fit_.runs, o);
    if (place < fit_.runs.size()) {
      ++left_out_[place < at_hand_ ? kAddedBefore : kTwice];
      return;
    }
    fit_.runs.push_back(AddedRun(o, *modelled));
    fit_.provenance.sources.push_back(o.source);
    ++fit_.provenance.runs;
    ++fit_.provenance.observations;
  }

  bool any_usable() const { return any_usable_; }

  AddedFit Take() {
    std::vector<std::string>& sources = fit_.provenance.sources;
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    return {std::move(fit_), std::move(left_out_)};
  }

 private:
  FittedRun AddedRun(const Observation& o, model::Seconds<> modelled) const {
    return {.label = o.label,
            .workload = Describe(o.workload),
            .place = PlaceOf(o.workload, device_),
            .devices = o.device_count,
            .hosts = o.hosts,
            .ranks = RanksAlike(o),
            .added = true,
            .assumed = o.assumed,
            .measured = o.measured,
            .modelled = modelled,
            .left_out = std::nullopt};
  }

  const hardware::Device& device_;
  Formula formula_;
  size_t at_hand_;  // runs that the fit had
  Fit fit_;
  std::set<std::string_view> wholes_;  // whose parts are no figures besides
  LeftOut left_out_;
  bool any_usable_ = false;
};

}  // namespace

AddedFit AddRuns(const hardware::Device& device,
                 Fit fit,
                 const std::vector<Observation>& observations) {
  const std::string name = fit.name;
  Adder adder(device, std::move(fit), observations);
  for (const Observation& o : observations) adder.Add(o);
  if (!adder.any_usable()) {
    throw InputError(fmt::format(
        "fit {}: expected whole steps of it, on one device or over links that "
        "are known, got none among {}",
        name,
        hardware::Plural(std::ssize(observations), "measurement")));
  }
  return adder.Take();
}

}  // namespace trainfare::calibrate
