// From measurements to a fit: the device's formula against what was timed.

#include "calibrate/fit/device_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>
#include <span>
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
  const std::vector<double> left_out_means =
      fit.ModelDiscrepancy().LeftOutMeans();
  for (size_t i = 0; i < chief.size(); ++i) {
    const FittedRun& run = *chief[i];
    const double ratio = run.modelled / run.measured;
    residuals.push_back(std::log(ratio));
    errors.push_back(std::abs(ratio - 1.0));
    if (run.left_out) {
      const double corrected =
          *run.left_out / run.measured * std::exp(-left_out_means[i]);
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
  // Kernels by themselves do not tell how far steps scatter. What engines were
  // seen to do determines parameters, and scatters with them.
  const auto steps = static_cast<double>(
      std::count_if(data.data.begin(), data.data.end(), [](const Datum& datum) {
        return !datum.kernel();
      }));
  double count = steps;
  for (const SeenEngines& seen : data.engines) {
    count += static_cast<double>(EngineFigureCount(seen.profile));
  }
  double freedom = std::max(1.0, count - effective);
  if (chief.empty()) {
    fit.degrees_of_freedom = 1;
    fit.residual_scatter = kDatasheetScatter;
    return;
  }
  const double scatter =
      RobustDeviation(residuals, 0.0) * std::sqrt(count / freedom);
  // Few times of steps stand behind the scatter, however many shares there are.
  freedom = std::min(freedom, std::max(1.0, steps));
  fit.degrees_of_freedom = static_cast<int64_t>(freedom);
  fit.residual_scatter =
      ScatterWithPrior(freedom * scatter * scatter, freedom, model_sigma);
  fit.in_sample_error = Median(errors);
  if (!left_out_errors.empty()) {
    fit.leave_one_out_error = Median(left_out_errors);
  }
}

void FillRuns(const hardware::Device& device,
              const FitData& data,
              const std::vector<double>& positions,
              Fit& fit) {
  for (const Datum& datum : data.data) {
    const TimeModel& model = data.models[datum.model];
    const LogTimes times = EvaluateValues(model, positions);
    const model::Workload* of_step = WorkloadOf(model);
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
                        .modelled = Seconds<>(std::exp(times[datum.quantity])),
                        .left_out = std::nullopt});
  }
}

void FillProfiles(const FitData& data, Fit& fit) {
  for (const SeenEngines& seen : data.engines) {
    const EngineProfile& profile = seen.profile;
    fit.profiles.push_back(
        {profile.label, Describe(profile.workload), profile.assumed});
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
  for (const SeenEngines& seen : data.engines) {
    provenance.observations +=
        static_cast<int64_t>(EngineFigureCount(seen.profile));
    runs.insert(seen.run);
  }
  provenance.runs = static_cast<int64_t>(runs.size());
}

}  // namespace

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
  FitData data = FitDataOf(device, own, options);
  const FitProblem problem = ProblemOf(device, data, options.robust_scale);
  const FitStart start = FindStart(problem, options, data);
  std::string message;
  const std::optional<Posterior> posterior =
      FindPosterior(problem, start.positions, &message);
  if (!posterior) {
    throw InputError(
        fmt::format("fit of {} refused: the solver did not converge ({})",
                    device.name,
                    message));
  }
  Fit fit = EmptyFit(device);
  FillParameters(
      device, data, *posterior, start.errors.step, options.name_runs, fit);
  FillRuns(device, data, posterior->positions, fit);
  FillProfiles(data, fit);
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
