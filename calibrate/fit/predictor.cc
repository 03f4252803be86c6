#include "calibrate/fit/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/limits.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// The device that the fit speaks of: a processor's dimensions are read from
// the machine and may read differently another day, and the efficiencies are
// shares of the peaks that stood when it was measured.
hardware::Device Measured(hardware::Device device, const Fit& fit) {
  if (fit.kind != device.kind || fit.device != device.name) {
    throw InputError(fmt::format(
        "fit {} is of {}, not of {}; calibrate on the device itself",
        fit.name,
        fit.device,
        device.name));
  }
  if (hardware::KindOf(device).is_host &&
      fit.reported_name != device.reported_name) {
    throw InputError(fmt::format(
        "fit {} is of the processor \"{}\", this one is \"{}\"; calibrate here",
        fit.name,
        fit.reported_name,
        device.reported_name));
  }
  return fit.measured_device ? *fit.measured_device : device;
}

// How little the runs behind a fit say of the formula's error at a place, as a
// share of its variance: nothing is left where one was like it. Where there are
// enough of them to see how that error varies with shape, ModelDiscrepancy does
// so, and other settings alone are left.
double UnseenShare(const std::vector<ErrorPoint>& runs,
                   const Place& place,
                   bool sees_shapes) {
  // A fit to kernels alone scatters as a datasheet does already.
  if (runs.empty()) return 0.0;
  const ErrorPoint at = ErrorPointOf(place);
  double closest = 0;
  for (const ErrorPoint& run : runs) {
    closest = std::max(
        closest,
        sees_shapes ? SettingsCorrelation(at, run) : ErrorCorrelation(at, run));
  }
  return 1.0 - closest * closest;
}

bool Within(int64_t value, int64_t low, int64_t high) {
  return low <= value && value <= high;
}

// By how much a value is beyond a range, in its logarithm.
double Beyond(int64_t value, int64_t low, int64_t high) {
  const auto ratio = [](int64_t above, int64_t below) {
    return std::log(static_cast<double>(std::max<int64_t>(above, 1)) /
                    static_cast<double>(std::max<int64_t>(below, 1)));
  };
  return std::max({0.0, ratio(value, high), ratio(low, value)});
}

// Degrees of freedom of what errors scatter by beyond what was measured and over
// several devices, however many runs there are: of rows that were left out 95 %
// lie within 1.4 to 2.4 times what 80 % do (docs/results/intervals.md), 1.94 of
// Student's t of 3.
constexpr int64_t kFreedomBeyond = 3;

double ScatterBeyond(const FittedRange& range, const model::Workload& w) {
  const double tokens = Beyond(w.tokens(), range.min_tokens, range.max_tokens);
  const double length = Beyond(
      w.sequence_length, range.min_sequence_length, range.max_sequence_length);
  const double parameters = Beyond(model::TotalParameters(w.architecture),
                                   range.min_parameters,
                                   range.max_parameters);
  return hardware::FactsOfErrors().beyond *
         std::hypot(tokens, length, parameters);
}

}  // namespace

std::string WordsOfRun(const model::Workload& workload) {
  if (workload.parallel.shard != model::Shard::kNone) return Describe(workload);
  model::Workload of_one = workload;
  of_one.parallel = {};
  return Describe(of_one);
}

std::string_view ToText(Grade grade) {
  switch (grade) {
    case Grade::kMeasured:
      return "measured";
    case Grade::kInterpolated:
      return "interpolated";
    case Grade::kExtrapolated:
      return "extrapolated";
    case Grade::kDatasheetOnly:
      return "datasheet only";
  }
  ENSURE(false, "every grade has a name");
}

std::string GradeText(Grade grade, int64_t figures) {
  if (figures == 0 || figures > kFewFigures) return std::string(ToText(grade));
  return fmt::format(
      "{} from {}", ToText(grade), hardware::Plural(figures, "figure"));
}

Predictor::Predictor(hardware::Device device)
    : device_(std::move(device)),
      fit_(PriorFit(device_)),
      fitted_(false),
      values_(fit_.Values()) {
  joined_ = NumbersOf(device_.kind, fit_.joined);
  quantile_ = kNormalQuantile90;
}

Predictor::Predictor(hardware::Device device, Fit fit)
    : device_(Measured(std::move(device), fit)),
      fit_(std::move(fit)),
      fitted_(true),
      values_(fit_.Values()) {
  const int64_t freedom =
      std::max<int64_t>(fit_.degrees_of_freedom, 1) + kScatterPriorWeight;
  quantile_ = StudentQuantile90(freedom);
  width_95_ = StudentQuantile975(freedom) / quantile_;
  joined_ = NumbersOf(device_.kind, fit_.joined);
  over_ranks_ = fit_.ModelDiscrepancy();
  discrepancy_ = fit_.DiscrepancyOfOne().value_or(over_ranks_);
  added_ = AddedRuns(fit_.runs, [this](const FittedRun& run) {
    return (run.ranks > 1 ? over_ranks_ : discrepancy_).MeanAt(*run.place);
  });
  for (const FittedRun& run : fit_.runs) {
    if (run.added) continue;
    if (run.place) run_points_.push_back(ErrorPointOf(*run.place));
    Residuals& of_part = residuals_[static_cast<size_t>(run.quantity)];
    of_part.squares += std::pow(std::log(run.modelled / run.measured), 2.0);
    ++of_part.count;
    if (run.ranks > 1) {
      AddJoined(run);
      continue;
    }
    const int64_t devices = run.devices.value_or(1);
    if (run.quantity == Quantity::kKernel || devices == 0) continue;
    least_devices_ =
        least_devices_ == 0 ? devices : std::min(least_devices_, devices);
    most_devices_ = std::max(most_devices_, devices);
    if (run.quantity == Quantity::kStep && !run.assumed) {
      measured_.push_back({run.workload, devices, run.place});
    }
  }
}

const Discrepancy& Predictor::DiscrepancyOf(
    const model::Workload& workload) const {
  return workload.parallel.data > 1 ? over_ranks_ : discrepancy_;
}

void Predictor::AddJoined(const FittedRun& run) {
  least_joined_ =
      least_joined_ == 0 ? run.ranks : std::min(least_joined_, run.ranks);
  most_joined_ = std::max(most_joined_, run.ranks);
  if (!run.assumed) {
    measured_joined_.emplace(run.workload, run.ranks, run.hosts);
  }
  const double residual = std::log(run.modelled / run.measured);
  joined_squares_ += residual * residual;
  ++joined_runs_;
}

Grade Predictor::GradeOverRanks(const model::Workload& workload,
                                int64_t ranks,
                                int64_t hosts) const {
  const Grade of_shape = ShapeGrade(workload);
  if (of_shape != Grade::kInterpolated) return of_shape;
  if (measured_joined_.contains({WordsOfRun(workload), ranks, hosts})) {
    return Grade::kMeasured;
  }
  return Within(ranks, least_joined_, most_joined_) ? Grade::kInterpolated
                                                    : Grade::kExtrapolated;
}

double Predictor::RanksScatter(double unmeasured) const {
  if (joined_runs_ == 0) return unmeasured;
  return ScatterWithPrior(
      joined_squares_, static_cast<double>(joined_runs_), unmeasured);
}

double Predictor::OpenShare(const model::Workload& workload) const {
  return std::sqrt(added_.At(workload, device_).variance);
}

// Words take long to write: only where a run of that batch and length is.
bool Predictor::IsMeasured(const model::Workload& workload,
                           int64_t devices) const {
  std::string words;
  for (const MeasuredStep& step : measured_) {
    const bool elsewhere =
        step.place && (step.place->batch != workload.batch ||
                       step.place->sequence_length != workload.sequence_length);
    if (elsewhere || step.devices != devices) continue;
    if (words.empty()) words = WordsOfRun(workload);
    if (words == step.words) return true;
  }
  return false;
}

Grade Predictor::GradeOver(const model::Workload& workload,
                           int64_t devices) const {
  return GradeOver(ShapeGrade(workload), workload, devices);
}

Grade Predictor::GradeOver(Grade of_shape,
                           const model::Workload& workload,
                           int64_t devices) const {
  if (of_shape != Grade::kInterpolated) return of_shape;
  if (IsMeasured(workload, devices)) return Grade::kMeasured;
  // Where only a part of a device ran it stands for one.
  const int64_t least = std::max<int64_t>(least_devices_, 1);
  return Within(devices, least, std::max(most_devices_, least))
             ? Grade::kInterpolated
             : Grade::kExtrapolated;
}

bool Predictor::HasExchangeOf(int64_t devices) const {
  return least_devices_ > 1 && Within(devices, least_devices_, most_devices_);
}

bool Predictor::HasSource(std::string_view source) const {
  const std::vector<std::string>& sources = fit_.provenance.sources;
  return std::find(sources.begin(), sources.end(), source) != sources.end();
}

double Predictor::HeavyWidth95() const {
  static const double heavy =
      StudentQuantile975(kFreedomBeyond) / StudentQuantile90(kFreedomBeyond);
  return std::max(heavy, width_95_);
}

double Predictor::Width95(Grade of_shape) const {
  const bool is_beyond = of_shape == Grade::kExtrapolated || !KnowsSteps();
  return is_beyond ? HeavyWidth95() : width_95_;
}

double Predictor::WidthOverRanks(Grade over_ranks) const {
  return over_ranks < Grade::kExtrapolated
             ? hardware::FactsOfKind(device_.kind).width_over_ranks
             : 1.0;
}

// What a source did not measure of itself nobody knows better than its
// datasheet.
double Predictor::WidthAt(Grade of_shape, bool source_seen) const {
  const hardware::KindFacts& kind = hardware::FactsOfKind(device_.kind);
  if (!KnowsSteps()) return kind.width_datasheet;
  if (of_shape != Grade::kExtrapolated) return 1.0;
  return source_seen ? kind.width_extrapolated : kind.width_datasheet;
}

// What all runs of a source share is N(0, tau^2), one of each source on a
// device. The fit has the mean of its k sources in it:
//
//   Var(b - mean b_k) = tau^2 (1 + 1 / k)
//
// and of its own sources what they differ by is in its residuals. Priors are of
// no source.
double Predictor::SourceSigma(std::string_view source) const {
  if (HasSource(source)) return 0.0;
  const auto count = static_cast<double>(fit_.provenance.sources.size());
  return hardware::FactsOfKind(device_.kind).source_sigma *
         (count > 0 ? std::sqrt(1.0 + 1.0 / count) : 1.0);
}

Grade Predictor::ShapeGrade(const model::Workload& workload) const {
  if (!fitted_) return Grade::kDatasheetOnly;
  const FittedRange& range = fit_.range;
  const bool inside =
      Within(workload.tokens(), range.min_tokens, range.max_tokens) &&
      Within(workload.sequence_length,
             range.min_sequence_length,
             range.max_sequence_length) &&
      Within(model::TotalParameters(workload.architecture),
             range.min_parameters,
             range.max_parameters) &&
      std::find(range.settings.begin(),
                range.settings.end(),
                SettingsOf(workload)) != range.settings.end();
  return inside ? Grade::kInterpolated : Grade::kExtrapolated;
}

model::KernelList Predictor::KernelsOf(const model::Workload& workload) const {
  model::Validate(workload);
  hardware::RequireSupported(device_, workload);
  return model::ExpandKernels(workload);
}

hardware::StepTime<double> Predictor::Corrected(
    const model::Workload& workload,
    const model::KernelList& kernels,
    double log_error) const {
  const auto step =
      hardware::EstimateStep<double>(device_, workload, kernels, values_);
  return step * std::exp(-log_error);
}

hardware::StepTime<double> Predictor::Time(
    const model::Workload& workload) const {
  return Corrected(workload,
                   KernelsOf(workload),
                   DiscrepancyOf(workload).MeanAt(PlaceOf(workload, device_)) +
                       added_.At(workload, device_).mean);
}

hardware::StepTime<double> Predictor::PredictTime(
    const model::Workload& workload) const {
  const model::KernelList kernels = KernelsOf(workload);
  const Discrepancy& discrepancy = DiscrepancyOf(workload);
  const double log_error =
      discrepancy.empty() ? 0.0
                          : discrepancy.At(PlaceOf(workload, device_)).mean;
  const auto time = Corrected(
      workload, kernels, log_error + added_.At(workload, device_).mean);
  RequirePlausible(workload, time.total(), 0.0);
  return time;
}

void Predictor::RequirePlausible(const model::Workload& workload,
                                 model::Seconds<> time,
                                 double log_sigma) const {
  if (model::IsPlausible(time) && std::isfinite(log_sigma)) return;
  throw InputError(
      fmt::format("the step of batch {} x length {} would take {:.3g} s, "
                  "which is beyond what can be answered; fit {}",
                  workload.batch,
                  workload.sequence_length,
                  model::ToSeconds(time),
                  fitted_ ? fit_.name : "none: datasheet"));
}

model::Seconds<> Predictor::KernelTime(const model::Workload& workload,
                                       model::Phase phase,
                                       const model::Kernel& kernel) const {
  hardware::RequirePrecisions(device_, workload);
  return hardware::EstimateKernel<double>(
      device_, workload, phase, kernel, values_);
}

model::Seconds<> Predictor::KernelTimeAlone(const model::Workload& workload,
                                            model::Phase phase,
                                            const model::Kernel& kernel) const {
  hardware::RequirePrecisions(device_, workload);
  std::vector<double> values = values_;
  if (const auto own = hardware::KindOf(device_).parameter_alone) {
    values[*own] = fit_.alone
                       ? fit_.alone->value
                       : hardware::ParametersOf(device_)[*own].Alone().prior;
  }
  return hardware::EstimateKernel<double>(
      device_, workload, phase, kernel, values);
}

// A part's errors are the step's as far as the part is the step, its own else:
// those of a small part average out in a step and say little of it. Where the
// part was measured by itself its residuals tell.
//
//   s_p^2 = w^2 s^2 + (1 - w^2) s_0^2       w: the part's share of the step
//
//   s_0  of a device that nobody measured
double Predictor::PartScatter(const LogTimes& times,
                              Quantity part,
                              double step_scatter) const {
  if (part == Quantity::kStep) return step_scatter;
  const double share = std::exp(times[part] - times[Quantity::kStep]);
  const double own =
      kDatasheetScatter * std::sqrt(std::max(0.0, 1.0 - share * share));
  const double unseen = std::hypot(share * step_scatter, own);
  const Residuals& of_part = residuals_[static_cast<size_t>(part)];
  return of_part.count > 0
             ? ScatterWithPrior(of_part.squares, of_part.count, unseen)
             : unseen;
}

// Var(log t) = g^T C g + scatter^2, to first order in the parameters; with
// runs to correct by, scatter^2 is what they leave open here and their noise.
double Predictor::LogSigma(const LogTimes& times,
                           Quantity part,
                           const Footing& footing) const {
  const auto gradient = times.GradientOf(part);
  const double scatter = PartScatter(times, part, footing.scatter);
  const size_t count = values_.size();
  double variance = 0.0;
  for (size_t i = 0; i < count; ++i) {
    if (gradient[i] == 0.0) continue;  // the step does not hang on it
    double moved = 0.0;
    for (size_t j = 0; j < count; ++j) {
      moved += fit_.covariance[i * count + j] * gradient[j];
    }
    variance += gradient[i] * moved;
  }
  double squares = std::max(variance, 0.0) + scatter * scatter +
                   kDatasheetScatter * kDatasheetScatter * footing.unseen;
  if (footing.grade == Grade::kExtrapolated && KnowsSteps()) {
    // What was measured says less of this than of its own kind: never surer
    // than the datasheet's priors alone, and less so with the distance.
    const auto infos = hardware::ParametersOf(device_.kind);
    double prior = kDatasheetScatter * kDatasheetScatter;
    for (size_t i = 0; i < count; ++i) {
      const double moved = infos[i].prior_sigma * gradient[i];
      prior += moved * moved;
    }
    squares = std::max(squares, prior) + footing.distance * footing.distance;
  }
  return std::sqrt(squares);
}

StepPrediction Predictor::Predict(const model::Workload& workload,
                                  std::string_view source) const {
  const model::KernelList kernels = KernelsOf(workload);
  StepPrediction prediction;
  // Settings in words take longer than many a formula: only where they count.
  const std::optional<Place> place =
      fitted_ ? std::optional(PlaceOf(workload, device_)) : std::nullopt;
  const Discrepancy& discrepancy = DiscrepancyOf(workload);
  const Correction correction = place ? discrepancy.At(*place) : Correction();
  const Correction added = added_.At(workload, device_);
  const StepAndSlopes step = EvaluateStep(device_, workload, kernels, values_);
  const LogTimes& times = step.log_times;
  prediction.time = step.time * std::exp(-(correction.mean + added.mean));
  Footing footing;
  footing.grade = ShapeGrade(workload);
  footing.scatter = fitted_ ? fit_.residual_scatter : kDatasheetScatter;
  if (!discrepancy.empty()) {
    footing.scatter =
        std::hypot(std::sqrt(correction.variance), discrepancy.noise());
  }
  if (place) {
    footing.unseen = UnseenShare(run_points_, *place, !discrepancy.empty());
    footing.distance = ScatterBeyond(fit_.range, workload);
  }
  prediction.grade = GradeOver(footing.grade, workload, 1);
  prediction.source_seen = HasSource(source);
  prediction.source_sigma = SourceSigma(source);
  const double width = workload.work == model::Work::kForward
                           ? 1.0
                           : WidthAt(footing.grade, prediction.source_seen);
  const auto log_sigma = [&](Quantity part) {
    // A part that is not there takes no time, surely.
    if (!std::isfinite(times[part])) return 0.0;
    const double sigma = std::hypot(width * LogSigma(times, part, footing),
                                    prediction.source_sigma);
    // What was added leaves so much of it, and the noise of the rest.
    return added_.empty()
               ? sigma
               : std::hypot(sigma * std::sqrt(added.variance),
                            added_.noise() * std::sqrt(1.0 - added.variance));
  };
  prediction.log_sigma = log_sigma(Quantity::kStep);
  prediction.forward_log_sigma = log_sigma(Quantity::kForward);
  prediction.backward_log_sigma = log_sigma(Quantity::kBackward);
  prediction.optimizer_log_sigma = log_sigma(Quantity::kOptimizer);
  RequirePlausible(workload, prediction.time.total(), prediction.log_sigma);
  prediction.low_factor = std::exp(-quantile_ * prediction.log_sigma);
  prediction.high_factor = std::exp(quantile_ * prediction.log_sigma);
  prediction.width_95 = Width95(footing.grade);
  if (fitted_) prediction.figures = fit_.provenance.observations;
  return prediction;
}

}  // namespace trainfare::calibrate
