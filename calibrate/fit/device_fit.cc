// From measurements to a fit: the device's formula against what was timed.

#include "calibrate/fit/device_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "calibrate/fit/candidate_runs.h"
#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/problem.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using model::InputError;
using model::Seconds;

// The times of one workload's step, on one device or on several, or of one
// operation by itself.
using TimeModel = std::variant<StepModel, KernelModel, JoinedModel>;

// The workload of a step; nullptr: it is an operation by itself.
const model::Workload* WorkloadOf(const TimeModel& model) {
  if (const auto* one = std::get_if<StepModel>(&model)) return &one->workload();
  const auto* joined = std::get_if<JoinedModel>(&model);
  return joined != nullptr ? &joined->workload() : nullptr;
}

LogTimes Evaluate(const TimeModel& model, std::span<const double> positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.Evaluate(positions.first(of_kind.positions()));
      },
      model);
}
LogTimes EvaluateValues(const TimeModel& model,
                        std::span<const double> positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.EvaluateValues(positions.first(of_kind.positions()));
      },
      model);
}

struct Datum {
  size_t model = 0;     // index of its TimeModel
  size_t run = 0;       // index of its run's label
  int64_t devices = 1;  // that the run went over
  int64_t hosts = 1;
  int64_t ranks = 1;  // that exchange beside the step of one
  Quantity quantity = Quantity::kStep;
  Seconds<> measured;
  double log_measured = 0;
  double noise = 0;  // of the measurement, relative
  double sigma = 0;  // noise and model error together

  bool kernel() const { return quantity == Quantity::kKernel; }
};

// Everything that all fits to (parts of) the same observations share.
struct FitData {
  // Those of the device, then, where there are kernels by themselves, the one
  // that has a value of its own there: it is found and not kept. Then, where
  // there are runs over several devices, those of what joins them.
  std::vector<ParameterInfo> infos;
  size_t of_device = 0;
  size_t of_joined = 0;       // the first of them
  std::vector<double> prior;  // in the scale of the fit, as all positions
  std::vector<TimeModel> models;
  std::vector<std::string> words;  // of each, as Describe() has them
  std::vector<Datum> data;
  std::vector<std::string> runs;
};

// Scales of the robust loss before outliers are told from a bad start, widest
// first.
constexpr std::array kWiderScales = {16.0, 4.0};
// A formula that misses by more than this times the error assumed is not told
// from outliers any more: without the limit nothing would count as determined,
// and back at the priors it would miss by more still.
constexpr double kLargestModelSigma = 2.0;
// The same of steps over several devices: what a network and a host do there
// that no formula has must not move the device's own parameters.
constexpr double kLargestJoinedSigma = 5.0;
// The deviation of the logarithm of a kernel's time by itself. One that misses
// by more says little, but is no outlier.
constexpr double kLargestKernelSigma = 0.5;

// log(model / measured) / sigma of the figures of one workload or operation,
// which is evaluated once for all of them.
class TimeResiduals : public ResidualBlock {
 public:
  TimeResiduals(const FitData& data, size_t model, std::vector<size_t> figures)
      : data_(data), model_(data.models[model]), figures_(std::move(figures)) {}

  size_t size() const override { return figures_.size(); }
  bool Evaluate(std::span<const double> positions,
                std::span<double> residuals,
                std::span<double> slopes) const override {
    const LogTimes times = slopes.empty()
                               ? EvaluateValues(model_, positions)
                               : calibrate::Evaluate(model_, positions);
    bool finite = true;
    for (size_t i = 0; i < figures_.size(); ++i) {
      const Datum& datum = data_.data[figures_[i]];
      residuals[i] = (times[datum.quantity] - datum.log_measured) / datum.sigma;
      finite &= std::isfinite(residuals[i]);
      if (slopes.empty()) continue;
      const auto gradient = times.GradientOf(datum.quantity);
      for (size_t j = 0; j < positions.size(); ++j) {
        slopes[i * positions.size() + j] = gradient[j] / datum.sigma;
      }
    }
    return finite;
  }

 private:
  const FitData& data_;
  const TimeModel& model_;
  std::vector<size_t> figures_;  // indices of the data
};

// `data` must outlive the problem; its sigmas may change meanwhile.
FitProblem ProblemOf(const FitData& data, double robust_scale) {
  std::vector<BoundedParameter> parameters;
  for (const ParameterInfo& info : data.infos) {
    parameters.push_back(Bounded(info));
  }
  FitProblem problem(std::move(parameters), robust_scale);
  std::vector<std::vector<size_t>> figures(data.models.size());
  for (size_t i = 0; i < data.data.size(); ++i) {
    figures[data.data[i].model].push_back(i);
  }
  for (size_t model = 0; model < figures.size(); ++model) {
    std::vector<size_t> runs;
    for (const size_t figure : figures[model]) {
      runs.push_back(data.data[figure].run);
    }
    problem.Add(
        std::make_unique<TimeResiduals>(data, model, std::move(figures[model])),
        runs);
  }
  return problem;
}

// Errors of the formula itself, relative: of steps of one device and their
// parts, of steps over several, and of kernels by themselves.
struct ModelErrors {
  double step = 0;
  double joined = 0;
  double kernel = 0;
};

ModelErrors AssumedErrors(const FitOptions& options) {
  return {options.model_sigma, options.model_sigma, options.kernel_sigma};
}

double Sigma(const Datum& datum, const ModelErrors& errors) {
  if (datum.kernel()) return std::hypot(datum.noise, errors.kernel);
  return std::hypot(datum.noise, datum.ranks > 1 ? errors.joined : errors.step);
}

// What the residuals say of them: standard deviations of log(model / measured),
// robustly.
ModelErrors ErrorsAt(const FitData& data,
                     const std::vector<double>& positions,
                     const FitOptions& options) {
  std::vector<LogTimes> times;
  times.reserve(data.models.size());
  for (const TimeModel& model : data.models) {
    times.push_back(EvaluateValues(model, positions));
  }
  std::vector<double> steps;
  std::vector<double> joined;
  std::vector<double> kernels;
  for (const Datum& datum : data.data) {
    std::vector<double>& of_kind = datum.kernel()    ? kernels
                                   : datum.ranks > 1 ? joined
                                                     : steps;
    of_kind.push_back(times[datum.model][datum.quantity] - datum.log_measured);
  }
  return {std::clamp(RobustDeviation(steps, 0.0),
                     options.model_sigma,
                     kLargestModelSigma * options.model_sigma),
          std::clamp(RobustDeviation(joined, 0.0),
                     options.model_sigma,
                     kLargestJoinedSigma * options.model_sigma),
          std::clamp(RobustDeviation(kernels, 0.0),
                     std::min(options.model_sigma, options.kernel_sigma),
                     std::max(kLargestKernelSigma, options.kernel_sigma))};
}

// One step that a fit takes; over several devices as they are joined.
struct Step {
  Observation observation;
  std::optional<JoinedDevices> joined;
};

// Figures of a fit, one by one.
class Collector {
 public:
  Collector(const hardware::Device& device, const FitOptions& options)
      : device_(device), options_(options) {}

  FitData Collect(const std::vector<Step>& steps,
                  const std::vector<KernelObservation>& kernels) {
    SetParameters(steps, !kernels.empty());
    for (const Step& step : steps) AddStep(step);
    for (const KernelObservation& o : kernels) {
      const std::string words = Describe(o);
      Datum datum{.quantity = Quantity::kKernel,
                  .measured = o.measured,
                  .noise = o.relative_noise};
      Add(o.label, words, words, datum, [&] {
        return KernelModel(device_, o);
      });
    }
    return std::move(data_);
  }

 private:
  void SetParameters(const std::vector<Step>& steps, bool has_kernels) {
    data_.infos = hardware::ParametersOf(device_);
    data_.of_device = data_.infos.size();
    const auto own = hardware::KindOf(device_).parameter_alone;
    if (own && has_kernels) data_.infos.push_back(data_.infos[*own]);
    data_.of_joined = data_.infos.size();
    // A network that somebody named is as sure as a link.
    double network_sigma = hardware::FactsOfLinks().ring_share_sigma;
    bool any = false;
    for (const Step& step : steps) {
      if (!step.joined) continue;
      any = true;
      if (!step.joined->network) continue;
      network_sigma = std::max(network_sigma, step.joined->network->sigma);
    }
    if (any) {
      const auto joined = JoinedParameters(device_.kind, network_sigma);
      data_.infos.insert(data_.infos.end(), joined.begin(), joined.end());
    }
    for (const ParameterInfo& info : data_.infos) {
      data_.prior.push_back(ToFitScale(info, info.prior));
    }
  }

  void AddStep(const Step& step) {
    const Observation& o = step.observation;
    const std::string words = Describe(o.workload);
    Datum datum{.devices = o.run_devices,
                .quantity = o.quantity,
                .measured = o.measured,
                .noise = o.relative_noise};
    if (!step.joined) {
      Add(o.label, words, words, datum, [&] {
        return StepModel(device_, o.workload);
      });
      return;
    }
    datum.devices = datum.ranks = o.device_count;
    datum.hosts = o.hosts;
    const double network =
        step.joined->network ? step.joined->network->wire.bandwidth.base() : 0;
    Add(o.label,
        fmt::format(
            "{} over {} on {} by {}", words, o.device_count, o.hosts, network),
        words,
        datum,
        [&] {
          return JoinedModel(
              device_, o.workload, *step.joined, data_.of_joined);
        });
  }

  // `key` tells its model from others, `words` stand in the fit.
  template <class MakeModel>
  void Add(const std::string& label,
           const std::string& key,
           const std::string& words,
           Datum datum,
           const MakeModel& make_model) {
    const double measured = model::ToSeconds(datum.measured);
    if (!std::isfinite(measured) || measured <= 0.0) {
      throw InputError(fmt::format(
          "{}: expected a time above 0, got {} s", label, measured));
    }
    const auto [model, new_model] = model_of_.emplace(key, data_.models.size());
    if (new_model) {
      try {
        data_.models.push_back(make_model());
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", label, error.what()));
      }
      data_.words.push_back(words);
    }
    const auto [run, new_run] = run_of_.emplace(label, data_.runs.size());
    if (new_run) data_.runs.push_back(label);
    datum.model = model->second;
    datum.run = run->second;
    datum.log_measured = std::log(measured);
    datum.sigma = Sigma(datum, AssumedErrors(options_));
    const LogTimes at_prior =
        EvaluateValues(data_.models[datum.model], data_.prior);
    if (!std::isfinite(at_prior[datum.quantity])) {
      throw InputError(
          fmt::format("{}: measured the {} of a step that has none",
                      label,
                      ToText(datum.quantity)));
    }
    data_.data.push_back(datum);
  }

  const hardware::Device& device_;
  const FitOptions& options_;
  FitData data_;
  std::map<std::string, size_t> model_of_;
  std::map<std::string, size_t> run_of_;
};

// A run that one might do, and what it would be sensitive to.
struct Candidate {
  model::Workload workload;
  LogTimes times;
};

// Names the run that would narrow a parameter most, given what is known.
std::string DeterminingRun(const ParameterInfo& info,
                           const std::vector<Candidate>& candidates,
                           const Eigen::MatrixXd& covariance,
                           Eigen::Index row,
                           double model_sigma) {
  double best = 0.0;
  const Candidate* run = nullptr;
  for (const Candidate& candidate : candidates) {
    for (const auto& of_quantity : candidate.times.gradient) {
      const Eigen::Map<const Eigen::VectorXd> gradient(of_quantity.data(),
                                                       covariance.rows());
      const Eigen::VectorXd moved = covariance * gradient;
      const double taken = moved(row) * moved(row) /
                           (gradient.dot(moved) + model_sigma * model_sigma);
      // A clear lead, so that rounding never decides.
      if (taken > best * (1.0 + 1e-9)) {
        best = taken;
        run = &candidate;
      }
    }
  }
  std::string text(info.determined_by);
  // A hundredth of the variance is no reason to name a run.
  if (run != nullptr && best > 0.01 * covariance(row, row)) {
    const model::Workload& w = run->workload;
    text += fmt::format("; such as {} {}, batch {}, length {}",
                        w.architecture.name,
                        model::ToText(w.precision),
                        w.batch,
                        w.sequence_length);
  }
  return text;
}

std::vector<model::Precision> PrecisionsOf(const hardware::Device& device) {
  std::vector<model::Precision> precisions;
  for (const auto precision : {model::Precision::kFp32,
                               model::Precision::kTf32,
                               model::Precision::kFp16,
                               model::Precision::kBf16}) {
    if (device.MatrixPeak(precision)) precisions.push_back(precision);
  }
  return precisions;
}

FittedParameter ParameterAt(const FitData& data,
                            const Posterior& posterior,
                            size_t i) {
  const auto at = static_cast<Eigen::Index>(i);
  const ParameterInfo& info = data.infos[i];
  FittedParameter parameter;
  parameter.name = info.name;
  // exp(log(bound)) may round past the bound that a file is read against.
  parameter.value = posterior.held[i]
                        ? info.prior
                        : std::clamp(FromFitScale(info, posterior.positions[i]),
                                     info.lower,
                                     info.upper);
  parameter.standard_error = std::sqrt(posterior.covariance(at, at));
  parameter.prior = info.prior;
  parameter.determined = !posterior.held[i];
  return parameter;
}

void FillParameters(const hardware::Device& device,
                    const FitData& data,
                    const Posterior& posterior,
                    double model_sigma,
                    bool name_runs,
                    Fit& fit) {
  const std::vector<bool>& held = posterior.held;
  const std::vector<double>& positions = posterior.positions;
  const Eigen::MatrixXd& covariance = posterior.covariance;
  std::vector<Candidate> candidates;
  if (name_runs && std::find(held.begin(), held.end(), true) != held.end()) {
    for (model::Workload& workload :
         CandidateRuns(device, PrecisionsOf(device))) {
      const LogTimes times =
          StepModel(device, workload)
              .Evaluate(std::span(positions).first(data.of_device));
      candidates.push_back({std::move(workload), times});
    }
  }
  const auto of_device = static_cast<Eigen::Index>(data.of_device);
  for (size_t i = 0; i < data.of_device; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    FittedParameter parameter = ParameterAt(data, posterior, i);
    if (held[i] && name_runs) {
      parameter.determined_by = DeterminingRun(
          data.infos[i], candidates, covariance, at, model_sigma);
    }
    fit.parameters.push_back(std::move(parameter));
    for (Eigen::Index j = 0; j < of_device; ++j) {
      fit.covariance.push_back(covariance(at, j));
    }
  }
  for (size_t i = data.of_joined; i < data.infos.size(); ++i) {
    FittedParameter parameter = ParameterAt(data, posterior, i);
    if (held[i]) parameter.determined_by = data.infos[i].determined_by;
    fit.joined.push_back(std::move(parameter));
  }
}

// What a fit to all other runs makes of each; the held parameters stay held.
void LeaveOneOut(const FitData& data,
                 const FitProblem& problem,
                 const Posterior& posterior,
                 const FitOptions& options,
                 Fit& fit) {
  const auto without = LeaveOutEachGroup(
      problem, posterior, options.largest_leverage, options.progress);
  for (size_t i = 0; i < data.data.size(); ++i) {
    const Datum& datum = data.data[i];
    const auto& positions = without[datum.run];
    if (!positions) continue;
    const LogTimes times = EvaluateValues(data.models[datum.model], *positions);
    fit.runs[i].left_out = Seconds<>(std::exp(times[datum.quantity]));
  }
}

FittedRange RangeOf(const FitData& data) {
  std::vector<const model::Workload*> workloads;
  for (const TimeModel& model : data.models) {
    // A kernel by itself is no step that a prediction could lie near to.
    if (const model::Workload* of_step = WorkloadOf(model)) {
      workloads.push_back(of_step);
    }
  }
  return RangeOver(workloads);
}

double ErrorOf(Seconds<> modelled, const FittedRun& run) {
  return std::abs(modelled / run.measured - 1.0);
}

void FillKernelErrors(Fit& fit) {
  std::vector<double> errors;
  std::vector<double> left_out_errors;
  for (const FittedRun& run : fit.runs) {
    if (run.quantity != Quantity::kKernel) continue;
    errors.push_back(ErrorOf(run.modelled, run));
    if (run.left_out) left_out_errors.push_back(ErrorOf(*run.left_out, run));
  }
  if (!errors.empty()) fit.kernel_in_sample_error = Median(errors);
  if (!left_out_errors.empty()) {
    fit.kernel_leave_one_out_error = Median(left_out_errors);
  }
}

// Errors and scatter of the chief runs. One that is left out is corrected by
// the others' residuals, as a prediction is.
void FillErrors(const FitData& data,
                const FitProblem& problem,
                const Posterior& posterior,
                double model_sigma,
                Fit& fit) {
  std::vector<double> residuals;
  std::vector<double> errors;
  std::vector<double> left_out_errors;
  const std::vector<const FittedRun*> chief = fit.ChiefRuns();
  const Discrepancy discrepancy = fit.ModelDiscrepancy();
  for (size_t i = 0; i < chief.size(); ++i) {
    const FittedRun& run = *chief[i];
    const double ratio = run.modelled / run.measured;
    residuals.push_back(std::log(ratio));
    errors.push_back(std::abs(ratio - 1.0));
    if (run.left_out) {
      const double corrected =
          *run.left_out / run.measured * std::exp(-discrepancy.LeftOutMean(i));
      left_out_errors.push_back(std::abs(corrected - 1.0));
    }
  }
  // Number of parameters that the data rather than the prior determines, in
  // fractions: MacKay 1992, "Bayesian interpolation", equation 4.9.
  double effective = 0.0;
  for (size_t i = 0; i < data.infos.size(); ++i) {
    // A value that kernels have by themselves moves no step.
    const bool of_kernels = i >= data.of_device && i < data.of_joined;
    if (posterior.held[i] || of_kernels) continue;
    const double narrowed = NarrowedTo(problem, posterior.covariance, i);
    effective += 1.0 - narrowed * narrowed;
  }
  // Kernels by themselves do not tell how far steps scatter.
  const auto count = static_cast<double>(
      std::count_if(data.data.begin(), data.data.end(), [](const Datum& datum) {
        return !datum.kernel();
      }));
  const double freedom = std::max(1.0, count - effective);
  if (chief.empty()) {
    fit.degrees_of_freedom = 1;
    fit.residual_scatter = kDatasheetScatter;
    return;
  }
  const double scatter =
      RobustDeviation(residuals, 0.0) * std::sqrt(count / freedom);
  fit.degrees_of_freedom = static_cast<int64_t>(freedom);
  fit.residual_scatter =
      ScatterWithPrior(freedom * scatter * scatter, freedom, model_sigma);
  fit.in_sample_error = Median(errors);
  if (!left_out_errors.empty()) {
    fit.leave_one_out_error = Median(left_out_errors);
  }
}

// From the priors a sharp loss would take most runs for outliers and stay
// there: what is far off is told by the scatter that a wide one leaves. Moves
// `start` there, and sets the sigmas of the data.
ModelErrors EstimateErrors(const FitProblem& problem,
                           const FitOptions& options,
                           FitData& data,
                           std::vector<double>& start) {
  ModelErrors errors = AssumedErrors(options);
  for (const double wider : kWiderScales) {
    std::optional<Solution> solved = Solve(problem, start, {.widened = wider});
    if (!solved) continue;
    start = std::move(solved->positions);
    errors = ErrorsAt(data, start, options);
    for (Datum& datum : data.data) datum.sigma = Sigma(datum, errors);
  }
  return errors;
}

void FillRuns(const FitData& data,
              const std::vector<double>& positions,
              Fit& fit) {
  for (const Datum& datum : data.data) {
    const TimeModel& model = data.models[datum.model];
    const LogTimes times = EvaluateValues(model, positions);
    const model::Workload* of_step = WorkloadOf(model);
    fit.runs.push_back({.label = data.runs[datum.run],
                        .workload = data.words[datum.model],
                        .place = of_step != nullptr
                                     ? std::optional(PlaceOf(*of_step))
                                     : std::nullopt,
                        .quantity = datum.quantity,
                        .devices = datum.devices,
                        .hosts = datum.hosts,
                        .ranks = datum.ranks,
                        .measured = datum.measured,
                        .modelled = Seconds<>(std::exp(times[datum.quantity])),
                        .left_out = std::nullopt});
  }
}

void CountFigures(const FitData& data, Provenance& provenance) {
  std::set<size_t> runs;
  for (const Datum& datum : data.data) {
    if (datum.kernel()) {
      ++provenance.kernels;
    } else {
      ++provenance.observations;
      runs.insert(datum.run);
    }
  }
  provenance.runs = static_cast<int64_t>(runs.size());
}

// Those of one device.
struct OwnFigures {
  std::vector<Step> steps;
  std::vector<KernelObservation> kernels;
};

// Kernels by themselves are of the trainer alone.
std::vector<std::string> SourcesOf(const OwnFigures& own) {
  std::set<std::string> sources;
  for (const Step& step : own.steps) {
    sources.insert(step.observation.source);
  }
  if (!own.kernels.empty()) sources.emplace(kOwnSource);
  return {sources.begin(), sources.end()};
}

OwnFigures OfDevice(const hardware::Device& device,
                    const std::vector<Observation>& observations,
                    const std::vector<KernelObservation>& kernels) {
  if (observations.empty() && kernels.empty()) {
    throw InputError(
        fmt::format("fit of {}: expected measurements, got none", device.name));
  }
  OwnFigures own;
  std::set<std::string> others;
  int64_t of_several = 0;
  for (const Observation& observation : observations) {
    if (!IsDevice(device, observation.device)) {
      others.insert(observation.device);
    } else if (observation.device_count == 1 &&
               !model::Offloads(observation.workload.parallel)) {
      own.steps.push_back({observation, std::nullopt});
    } else if (auto joined = FittableOver(device, observation)) {
      own.steps.push_back({observation, std::move(joined)});
    } else {
      ++of_several;
    }
  }
  for (const KernelObservation& kernel : kernels) {
    if (IsDevice(device, kernel.device)) {
      own.kernels.push_back(kernel);
    } else {
      others.insert(kernel.device);
    }
  }
  if (!own.steps.empty() || !own.kernels.empty()) return own;
  if (of_several > 0) {
    throw InputError(fmt::format(
        "fit of {}: all {} measurements of it are of several devices; a fit "
        "needs runs on one, or over links that are known",
        device.name,
        of_several));
  }
  std::string name = device.name;
  if (!device.reported_name.empty()) {
    name += fmt::format(" ({})", device.reported_name);
  }
  throw InputError(
      fmt::format("fit of {}: none of {} measurements is of it; they are of {}",
                  name,
                  observations.size() + kernels.size(),
                  model::JoinNames(model::NameViews(others))));
}

}  // namespace

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options) {
  return FitDevice(device, observations, {}, options);
}

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const FitOptions& options) {
  const OwnFigures own = OfDevice(device, observations, kernels);
  FitData data = Collector(device, options).Collect(own.steps, own.kernels);
  const FitProblem problem = ProblemOf(data, options.robust_scale);
  std::vector<double> start = data.prior;
  const ModelErrors errors = EstimateErrors(problem, options, data, start);
  std::string message;
  const std::optional<Posterior> posterior =
      FindPosterior(problem, std::move(start), &message);
  if (!posterior) {
    throw InputError(
        fmt::format("fit of {} refused: the solver did not converge ({})",
                    device.name,
                    message));
  }
  Fit fit = EmptyFit(device);
  FillParameters(device, data, *posterior, errors.step, options.name_runs, fit);
  FillRuns(data, posterior->positions, fit);
  // Where there is one run, nothing is left without it.
  if (options.leave_one_out && data.runs.size() > 1) {
    LeaveOneOut(data, problem, *posterior, options, fit);
  }
  FillErrors(data, problem, *posterior, options.model_sigma, fit);
  FillKernelErrors(fit);
  fit.range = RangeOf(data);
  CountFigures(data, fit.provenance);
  fit.provenance.sources = SourcesOf(own);
  return fit;
}

}  // namespace trainfare::calibrate
