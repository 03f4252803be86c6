// From measurements to a fit: the device's formula against what was timed.

#include "calibrate/fit/device_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "calibrate/fit/candidate_runs.h"
#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/engine_figures.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_data.h"
#include "calibrate/fit/fit_start.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/problem.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using model::InputError;
using model::Seconds;

// Of which runs a fit is made: all, or all but some.
class Kept {
 public:
  explicit Kept(size_t runs, const std::vector<size_t>& without = {})
      : runs_(runs, true) {
    for (const size_t run : without) runs_[run] = false;
  }
  bool Has(const Datum& datum) const { return runs_[datum.run]; }
  bool Has(const SeenEngines& seen) const { return runs_[seen.run]; }

 private:
  std::vector<bool> runs_;
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
  if (data.of_joined > data.of_device) {
    fit.alone = ParameterAt(data, posterior, data.of_device);
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

FittedRange RangeOf(const FitData& data, const Kept& kept) {
  std::vector<bool> used(data.models.size());
  for (const Datum& datum : data.data) {
    if (kept.Has(datum)) used[datum.model] = true;
  }
  std::vector<const model::Workload*> workloads;
  for (size_t i = 0; i < used.size(); ++i) {
    // A kernel by itself is no step that a prediction could lie near to.
    const model::Workload* of_step = WorkloadOf(data.models[i]);
    if (used[i] && of_step != nullptr) workloads.push_back(of_step);
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

// |model / measured - 1| of the chief runs that were left out. Each is corrected
// by the others' residuals, as a prediction is.
std::vector<double> LeftOutErrors(const Fit& fit) {
  const std::vector<const FittedRun*> chief = fit.ChiefRuns();
  std::vector<double> errors;
  // Of those left out alone: of many places a process costs as much as a fit.
  const bool any_left_out =
      std::any_of(chief.begin(), chief.end(), [](const FittedRun* run) {
        return run->left_out.has_value();
      });
  if (!any_left_out) return errors;
  const std::vector<double> means = fit.ModelDiscrepancy().LeftOutMeans();
  for (size_t i = 0; i < chief.size(); ++i) {
    const FittedRun& run = *chief[i];
    if (!run.left_out) continue;
    const double corrected = *run.left_out / run.measured * std::exp(-means[i]);
    errors.push_back(std::abs(corrected - 1.0));
  }
  return errors;
}

// Number of parameters that the data rather than the prior determines, in
// fractions: MacKay 1992, "Bayesian interpolation", equation 4.9.
double DeterminedParameters(const FitData& data,
                            const FitProblem& problem,
                            const Posterior& posterior) {
  double effective = 0.0;
  for (size_t i = 0; i < data.infos.size(); ++i) {
    // A value that kernels have by themselves moves no step.
    const bool of_kernels = i >= data.of_device && i < data.of_joined;
    if (posterior.held[i] || of_kernels) continue;
    const double narrowed = NarrowedTo(problem, posterior.covariance, i);
    effective += 1.0 - narrowed * narrowed;
  }
  return effective;
}

// Errors and scatter of the chief runs.
void FillErrors(const FitData& data,
                const Kept& kept,
                const FitProblem& problem,
                const Posterior& posterior,
                double model_sigma,
                Fit& fit) {
  std::vector<double> residuals;
  std::vector<double> errors;
  for (const FittedRun* run : fit.ChiefRuns()) {
    const double ratio = run->modelled / run->measured;
    residuals.push_back(std::log(ratio));
    errors.push_back(std::abs(ratio - 1.0));
  }
  if (residuals.empty()) {
    fit.degrees_of_freedom = 1;
    fit.residual_scatter = kDatasheetScatter;
    return;
  }
  // Kernels by themselves do not tell how far steps scatter. What engines were
  // seen to do determines parameters, and scatters with them.
  const auto steps = static_cast<double>(std::count_if(
      data.data.begin(), data.data.end(), [&](const Datum& datum) {
        return kept.Has(datum) && !datum.kernel();
      }));
  double count = steps;
  for (const SeenEngines& seen : data.engines) {
    if (!kept.Has(seen)) continue;
    count += static_cast<double>(EngineFigureCount(seen.profile));
  }
  double freedom =
      std::max(1.0, count - DeterminedParameters(data, problem, posterior));
  const double scatter =
      RobustDeviation(residuals, 0.0) * std::sqrt(count / freedom);
  // Few times of steps stand behind the scatter, however many shares there are.
  freedom = std::min(freedom, std::max(1.0, steps));
  fit.degrees_of_freedom = static_cast<int64_t>(freedom);
  fit.residual_scatter =
      ScatterWithPrior(freedom * scatter * scatter, freedom, model_sigma);
  fit.in_sample_error = Median(errors);
  const std::vector<double> left_out = LeftOutErrors(fit);
  if (!left_out.empty()) fit.leave_one_out_error = Median(left_out);
}

// log(model) of each datum.
std::vector<double> LogTimesAt(const FitData& data,
                               const std::vector<double>& positions) {
  std::vector<double> log_times;
  log_times.reserve(data.data.size());
  for (const Datum& datum : data.data) {
    log_times.push_back(
        EvaluateValues(data.models[datum.model], positions)[datum.quantity]);
  }
  return log_times;
}

void FillRuns(const hardware::Device& device,
              const FitData& data,
              const Kept& kept,
              const std::vector<double>& log_times,
              Fit& fit) {
  for (size_t i = 0; i < data.data.size(); ++i) {
    const Datum& datum = data.data[i];
    if (!kept.Has(datum)) continue;
    const model::Workload* of_step = WorkloadOf(data.models[datum.model]);
    fit.runs.push_back({.label = data.runs[datum.run],
                        .workload = data.words[datum.model],
                        .place = of_step != nullptr
                                     ? std::optional(PlaceOf(*of_step, device))
                                     : std::nullopt,
                        .quantity = datum.quantity,
                        .devices = datum.devices,
                        .hosts = datum.hosts,
                        .ranks = datum.ranks,
                        .assumed = datum.assumed,
                        .measured = datum.measured,
                        .modelled = Seconds<>(std::exp(log_times[i])),
                        .left_out = std::nullopt});
  }
}

void FillProfiles(const FitData& data, const Kept& kept, Fit& fit) {
  for (const SeenEngines& seen : data.engines) {
    if (!kept.Has(seen)) continue;
    const EngineProfile& profile = seen.profile;
    fit.profiles.push_back(
        {profile.label, Describe(profile.workload), profile.assumed});
  }
}

void CountFigures(const FitData& data,
                  const Kept& kept,
                  Provenance& provenance) {
  std::set<size_t> runs;
  for (const Datum& datum : data.data) {
    if (!kept.Has(datum)) continue;
    if (datum.kernel()) {
      ++provenance.kernels;
    } else {
      ++provenance.observations;
      runs.insert(datum.run);
    }
  }
  for (const SeenEngines& seen : data.engines) {
    if (!kept.Has(seen)) continue;
    provenance.observations +=
        static_cast<int64_t>(EngineFigureCount(seen.profile));
    runs.insert(seen.run);
  }
  provenance.runs = static_cast<int64_t>(runs.size());
}

}  // namespace

// The data, and what is most probable by all of them.
struct WholeFit {
  WholeFit(const hardware::Device& device,
           const OwnFigures& own,
           const FitOptions& options)
      : data(FitDataOf(device, own, options)),
        problem(ProblemOf(device, data, options.robust_scale)),
        start(FindStart(problem, options, data)) {
    std::string message;
    std::optional<Posterior> found =
        FindPosterior(problem, start.positions, &message);
    if (!found) {
      throw InputError(
          fmt::format("fit of {} refused: the solver did not converge ({})",
                      device.name,
                      message));
    }
    posterior = std::move(*found);
  }
  // The problem refers to the data.
  WholeFit(const WholeFit&) = delete;
  WholeFit& operator=(const WholeFit&) = delete;

  FitData data;
  FitProblem problem;
  FitStart start;
  Posterior posterior;
};

class FitsWithout::All {
 public:
  All(const hardware::Device& device,
      const std::vector<Observation>& observations,
      const FitOptions& options)
      : device_(device),
        options_(options),
        own_(OfDevice(device_, observations, {}, {})),
        whole_(device_, own_, options),
        left_out_(whole_.problem, whole_.posterior, options.largest_leverage),
        log_times_(LogTimesAt(whole_.data, whole_.posterior.positions)) {
    for (size_t run = 0; run < whole_.data.runs.size(); ++run) {
      run_of_.emplace(whole_.data.runs[run], run);
    }
    FitProblem::Rows rows;
    whole_.problem.Evaluate(whole_.posterior.positions, true, rows);
    slopes_.resize(rows.slopes.size());
    const size_t count = whole_.problem.parameters().size();
    const std::vector<size_t> order = OrderOfResiduals(whole_.data);
    for (size_t row = 0; row < order.size(); ++row) {
      const double sigma = whole_.data.data[order[row]].sigma;
      for (size_t j = 0; j < count; ++j) {
        slopes_[order[row] * count + j] = rows.slopes[row * count + j] * sigma;
      }
    }
  }

  std::optional<Fit> Without(const std::set<std::string>& labels) const {
    std::vector<size_t> runs;
    for (const std::string& label : labels) {
      const auto run = run_of_.find(label);
      if (run != run_of_.end()) runs.push_back(run->second);
    }
    auto positions = left_out_.PositionsWithout(runs);
    if (!positions) return std::nullopt;
    const FitData& data = whole_.data;
    const Kept kept(data.runs.size(), runs);
    const std::vector<double> log_times = LogTimesNear(*positions);
    const Posterior posterior{std::move(*positions),
                              whole_.posterior.held,
                              left_out_.CovarianceWithout(runs)};
    Fit fit = EmptyFit(device_);
    FillParameters(device_, data, posterior, 0.0, false, fit);
    FillRuns(device_, data, kept, log_times, fit);
    FillErrors(
        data, kept, whole_.problem, posterior, options_.model_sigma, fit);
    fit.range = RangeOf(data, kept);
    CountFigures(data, kept, fit.provenance);
    std::set<std::string> sources;
    for (const Step& step : own_.steps) {
      if (!labels.contains(step.observation.label)) {
        sources.insert(step.observation.source);
      }
    }
    fit.provenance.sources.assign(sources.begin(), sources.end());
    return fit;
  }

 private:
  // log(model) of each datum close to where the fit to all stands, by slopes.
  std::vector<double> LogTimesNear(const std::vector<double>& positions) const {
    std::vector<double> log_times = log_times_;
    const size_t count = positions.size();
    for (size_t i = 0; i < log_times.size(); ++i) {
      for (size_t j = 0; j < count; ++j) {
        log_times[i] += slopes_[i * count + j] *
                        (positions[j] - whole_.posterior.positions[j]);
      }
    }
    return log_times;
  }

  hardware::Device device_;
  FitOptions options_;
  OwnFigures own_;
  WholeFit whole_;
  GroupsLeftOut left_out_;
  std::vector<double> log_times_;  // log(model) of each datum
  std::vector<double> slopes_;     // of these, a row each
  std::map<std::string, size_t> run_of_;
};

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options) {
  return FitDevice(device, observations, {}, {}, options);
}

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const std::vector<EngineProfile>& profiles,
              const FitOptions& options) {
  return FitFigures(
      device, OfDevice(device, observations, kernels, profiles), options);
}

Fit FitFigures(const hardware::Device& device,
               const OwnFigures& own,
               const FitOptions& options) {
  const WholeFit whole(device, own, options);
  const FitData& data = whole.data;
  const Posterior& posterior = whole.posterior;
  const Kept all(data.runs.size());
  Fit fit = EmptyFit(device);
  FillParameters(
      device, data, posterior, whole.start.errors.step, options.name_runs, fit);
  FillRuns(device, data, all, LogTimesAt(data, posterior.positions), fit);
  FillProfiles(data, all, fit);
  // Where there is one run, nothing is left without it.
  if (options.leave_one_out && data.runs.size() > 1) {
    LeaveOneOut(data, whole.problem, posterior, options, fit);
  }
  FillErrors(data, all, whole.problem, posterior, options.model_sigma, fit);
  FillKernelErrors(fit);
  fit.range = RangeOf(data, all);
  CountFigures(data, all, fit.provenance);
  fit.provenance.sources = SourcesOf(own);
  return fit;
}

FitsWithout::FitsWithout(const hardware::Device& device,
                         const std::vector<Observation>& observations,
                         const FitOptions& options)
    : all_(std::make_unique<const All>(device, observations, options)) {}
FitsWithout::~FitsWithout() = default;

std::optional<Fit> FitsWithout::Of(const std::set<std::string>& labels) const {
  return all_->Without(labels);
}

}  // namespace trainfare::calibrate
