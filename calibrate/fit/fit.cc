#include "calibrate/fit/fit.h"

#include <ceres/ceres.h>
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
#include "calibrate/fit/parallel_for.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using model::InputError;
using model::Seconds;

// Of one workload's step, or of one operation by itself.
using TimeModel = std::variant<StepModel, KernelModel>;

LogTimes Evaluate(const TimeModel& model,
                  const std::vector<double>& positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.Evaluate(
            std::span(positions).first(of_kind.positions()));
      },
      model);
}
LogTimes EvaluateValues(const TimeModel& model,
                        const std::vector<double>& positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.EvaluateValues(
            std::span(positions).first(of_kind.positions()));
      },
      model);
}

struct Datum {
  size_t model = 0;  // index of its TimeModel
  size_t run = 0;    // index of its run's label
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
  // that has a value of its own there: it is found and not kept.
  std::vector<ParameterInfo> infos;
  size_t of_device = 0;
  std::vector<double> prior;  // in the scale of the fit, as all positions
  std::vector<TimeModel> models;
  std::vector<std::string> words;  // of each, as Describe() has them
  std::vector<Datum> data;
  std::vector<std::string> runs;
  double robust_scale = 2.0;
};

// Of the robust loss before outliers are told from a bad start, widest first.
constexpr std::array kWiderScales = {16.0, 4.0};
// A formula that misses by more than this times the error assumed is not told
// from outliers any more: without the limit nothing would count as determined,
// and back at the priors it would miss by more still.
constexpr double kLargestModelSigma = 2.0;
// Of a kernel by itself, of its log. One that misses by more says little, but
// is no outlier.
constexpr double kLargestKernelSigma = 0.5;

// Parameters stand at their priors while that costs less than this in the log
// of the probability: what one standard deviation of one parameter costs.
constexpr double kIndifferentCost = 0.5;

constexpr size_t kNoRun = static_cast<size_t>(-1);

// What the solver moves: an unbounded number u for each parameter, so that a
// bound is approached and never hit. Steps cut at a bound would otherwise stall
// at its edge.
//
//   x = l + (h - l) / (1 + exp(-u))       l, h bounds of the position x
class Bounded {
 public:
  explicit Bounded(const ParameterInfo& info)
      : low_(ToFitScale(info, info.lower)),
        high_(ToFitScale(info, info.upper)) {
    ENSURE(std::isfinite(low_) && std::isfinite(high_) && low_ < high_,
           "every parameter is bounded");
  }
  double Position(double u) const {
    return low_ + (high_ - low_) / (1.0 + std::exp(-u));
  }
  double Slope(double u) const {
    const double share = 1.0 / (1.0 + std::exp(-u));
    return (high_ - low_) * share * (1.0 - share);
  }
  double Unbounded(double position) const {
    constexpr double kEdge = 1e-6;  // as close as a start may be to a bound
    const double share =
        std::clamp((position - low_) / (high_ - low_), kEdge, 1.0 - kEdge);
    return std::log(share / (1.0 - share));
  }

 private:
  double low_;
  double high_;
};

// Evaluates every workload once at each point that the solver looks at; the
// residuals of its four quantities only read from here.
class SharedEvaluation : public ceres::EvaluationCallback {
 public:
  SharedEvaluation(const FitData& data,
                   const std::vector<Bounded>& bounds,
                   const std::vector<bool>& held,
                   std::vector<double> positions,
                   const std::vector<double>& unbounded)
      : data_(data),
        bounds_(bounds),
        held_(held),
        unbounded_(unbounded),
        positions_(std::move(positions)),
        slopes_(positions_.size(), 0.0),
        log_times_(data.models.size()) {}

  void PrepareForEvaluation(bool evaluate_jacobians,
                            bool new_evaluation_point) override {
    if (!evaluate_jacobians && !new_evaluation_point) return;
    for (size_t i = 0; i < positions_.size(); ++i) {
      if (held_[i]) continue;
      positions_[i] = bounds_[i].Position(unbounded_[i]);
      slopes_[i] = bounds_[i].Slope(unbounded_[i]);
    }
    for (size_t i = 0; i < data_.models.size(); ++i) {
      log_times_[i] = evaluate_jacobians
                          ? Evaluate(data_.models[i], positions_)
                          : EvaluateValues(data_.models[i], positions_);
    }
  }
  const LogTimes& times(size_t model) const { return log_times_[model]; }
  double position(size_t parameter) const { return positions_[parameter]; }
  // Of the position over what the solver moves.
  double slope(size_t parameter) const { return slopes_[parameter]; }
  const std::vector<double>& positions() const { return positions_; }

 private:
  const FitData& data_;
  const std::vector<Bounded>& bounds_;
  const std::vector<bool>& held_;
  const std::vector<double>& unbounded_;
  std::vector<double> positions_;
  std::vector<double> slopes_;
  std::vector<LogTimes> log_times_;
};

// log(model / measured) / sigma of one observation.
class TimeResidual : public ceres::CostFunction {
 public:
  TimeResidual(const SharedEvaluation& evaluation,
               const Datum& datum,
               size_t parameters)
      : evaluation_(evaluation), datum_(datum) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->assign(parameters, 1);
  }

  bool Evaluate(double const* const* /*unbounded*/,
                double* residual,
                double** jacobians) const override {
    const LogTimes& times = evaluation_.times(datum_.model);
    residual[0] = (times[datum_.quantity] - datum_.log_measured) / datum_.sigma;
    if (jacobians == nullptr) return std::isfinite(residual[0]);
    const auto gradient = times.GradientOf(datum_.quantity);
    for (size_t i = 0; i < parameter_block_sizes().size(); ++i) {
      if (jacobians[i] != nullptr) {
        jacobians[i][0] = gradient[i] * evaluation_.slope(i) / datum_.sigma;
      }
    }
    return std::isfinite(residual[0]);
  }

 private:
  const SharedEvaluation& evaluation_;
  Datum datum_;
};

// (position - prior) / sigma of the prior.
class PriorResidual : public ceres::SizedCostFunction<1, 1> {
 public:
  PriorResidual(const SharedEvaluation& evaluation,
                size_t parameter,
                double prior,
                double sigma)
      : evaluation_(evaluation),
        parameter_(parameter),
        prior_(prior),
        sigma_(sigma) {}
  bool Evaluate(double const* const* /*unbounded*/,
                double* residual,
                double** jacobians) const override {
    residual[0] = (evaluation_.position(parameter_) - prior_) / sigma_;
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      jacobians[0][0] = evaluation_.slope(parameter_) / sigma_;
    }
    return true;
  }

 private:
  const SharedEvaluation& evaluation_;
  size_t parameter_;
  double prior_;
  double sigma_;
};

struct Solution {
  std::vector<double> positions;
  double cost = 0;  // minus the log of data's and priors' probability
};

// The most probable positions with those `held` where they stand; nullopt when
// the solver did not converge. `message` then says what it said.
std::optional<Solution> Solve(const FitData& data,
                              std::vector<double> positions,
                              const std::vector<bool>& held,
                              size_t without_run,
                              double robust_scale,
                              std::string* message = nullptr) {
  const size_t count = data.infos.size();
  std::vector<Bounded> bounds;
  std::vector<double> unbounded;
  for (size_t i = 0; i < count; ++i) {
    bounds.emplace_back(data.infos[i]);
    unbounded.push_back(bounds[i].Unbounded(positions[i]));
  }
  SharedEvaluation evaluation(
      data, bounds, held, std::move(positions), unbounded);
  ceres::Problem::Options problem_options;
  problem_options.evaluation_callback = &evaluation;
  ceres::Problem problem(problem_options);
  std::vector<double*> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back(&unbounded[i]);
    problem.AddParameterBlock(blocks[i], 1);
    if (held[i]) {
      problem.SetParameterBlockConstant(blocks[i]);
      continue;
    }
    problem.AddResidualBlock(
        new PriorResidual(
            evaluation, i, data.prior[i], data.infos[i].prior_sigma),
        nullptr,
        blocks[i]);
  }
  for (const Datum& datum : data.data) {
    if (datum.run == without_run) continue;
    problem.AddResidualBlock(new TimeResidual(evaluation, datum, count),
                             new ceres::CauchyLoss(robust_scale),
                             blocks);
  }

  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.num_threads = 1;
  options.max_num_iterations = 500;
  // Of a cost that is half a sum of squared standard deviations.
  options.function_tolerance = 1e-6;
  options.parameter_tolerance = 1e-8;
  options.gradient_tolerance = 1e-10;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  // IsSolutionUsable() would also take NO_CONVERGENCE.
  if (summary.termination_type != ceres::CONVERGENCE) {
    if (message != nullptr) *message = summary.message;
    return std::nullopt;
  }
  evaluation.PrepareForEvaluation(false, true);
  return Solution{evaluation.positions(), summary.final_cost};
}

// Inverse of the Gauss-Newton Hessian of data and prior at `positions`, each
// observation with the weight that the robust loss leaves it. The prior gives
// it full rank.
Eigen::MatrixXd PosteriorCovariance(const FitData& data,
                                    const std::vector<double>& positions) {
  const auto count = static_cast<Eigen::Index>(data.infos.size());
  Eigen::MatrixXd information = Eigen::MatrixXd::Zero(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const double sigma = data.infos[static_cast<size_t>(i)].prior_sigma;
    information(i, i) = 1.0 / (sigma * sigma);
  }
  std::vector<LogTimes> times;
  times.reserve(data.models.size());
  for (const TimeModel& model : data.models) {
    times.push_back(Evaluate(model, positions));
  }
  for (const Datum& datum : data.data) {
    const LogTimes& at = times[datum.model];
    const double residual =
        (at[datum.quantity] - datum.log_measured) / datum.sigma;
    const double scaled = residual / data.robust_scale;
    const double weight = 1.0 / (1.0 + scaled * scaled);
    const Eigen::Map<const Eigen::VectorXd> gradient(
        at.GradientOf(datum.quantity).data(), count);
    information.noalias() += (weight / (datum.sigma * datum.sigma)) * gradient *
                             gradient.transpose();
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(information);
  ENSURE(factor.info() == Eigen::Success, "priors make the rank full");
  return factor.solve(Eigen::MatrixXd::Identity(count, count));
}

// Errors of the formula itself, relative: of steps and their parts, and of
// kernels by themselves.
struct ModelErrors {
  double step = 0;
  double kernel = 0;
};

double Sigma(const Datum& datum, const ModelErrors& errors) {
  return std::hypot(datum.noise, datum.kernel() ? errors.kernel : errors.step);
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
  std::vector<double> kernels;
  for (const Datum& datum : data.data) {
    (datum.kernel() ? kernels : steps)
        .push_back(times[datum.model][datum.quantity] - datum.log_measured);
  }
  return {std::clamp(RobustDeviation(steps, 0.0),
                     options.model_sigma,
                     kLargestModelSigma * options.model_sigma),
          std::clamp(RobustDeviation(kernels, 0.0),
                     std::min(options.model_sigma, options.kernel_sigma),
                     std::max(kLargestKernelSigma, options.kernel_sigma))};
}

double NarrowedTo(const FitData& data,
                  const Eigen::MatrixXd& covariance,
                  size_t parameter) {
  const auto i = static_cast<Eigen::Index>(parameter);
  return std::sqrt(covariance(i, i)) / data.infos[parameter].prior_sigma;
}

// What Collect() adds one figure by.
struct Figure {
  const std::string& label;
  Quantity quantity = Quantity::kStep;
  Seconds<> measured;
  double noise = 0;
};

FitData Collect(const hardware::Device& device,
                const std::vector<Observation>& observations,
                const std::vector<KernelObservation>& kernels,
                const FitOptions& options) {
  FitData data;
  data.infos = hardware::ParametersOf(device);
  data.of_device = data.infos.size();
  const auto own = hardware::KindOf(device).parameter_alone;
  if (own && !kernels.empty()) data.infos.push_back(data.infos[*own]);
  data.robust_scale = options.robust_scale;
  for (const ParameterInfo& info : data.infos) {
    data.prior.push_back(ToFitScale(info, info.prior));
  }
  std::map<std::string, size_t> model_of;  // by words of the workload
  std::map<std::string, size_t> run_of;
  const auto add = [&](const Figure& figure,
                       const std::string& words,
                       const auto& make_model) {
    const double measured = model::ToSeconds(figure.measured);
    if (!std::isfinite(measured) || measured <= 0.0) {
      throw InputError(fmt::format(
          "{}: expected a time above 0, got {} s", figure.label, measured));
    }
    const auto [model, new_model] = model_of.emplace(words, data.models.size());
    if (new_model) {
      try {
        data.models.push_back(make_model());
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", figure.label, error.what()));
      }
      data.words.push_back(words);
    }
    const auto [run, new_run] = run_of.emplace(figure.label, data.runs.size());
    if (new_run) data.runs.push_back(figure.label);
    data.data.push_back({.model = model->second,
                         .run = run->second,
                         .quantity = figure.quantity,
                         .measured = figure.measured,
                         .log_measured = std::log(measured),
                         .noise = figure.noise,
                         .sigma = 0});
    const LogTimes at_prior =
        EvaluateValues(data.models[model->second], data.prior);
    if (!std::isfinite(at_prior[figure.quantity])) {
      throw InputError(
          fmt::format("{}: measured the {} of a step that has none",
                      figure.label,
                      ToText(figure.quantity)));
    }
    Datum& datum = data.data.back();
    datum.sigma = Sigma(datum, {options.model_sigma, options.kernel_sigma});
  };
  for (const Observation& o : observations) {
    add({o.label, o.quantity, o.measured, o.relative_noise},
        Describe(o.workload),
        [&] { return StepModel(device, o.workload); });
  }
  for (const KernelObservation& o : kernels) {
    add({o.label, Quantity::kKernel, o.measured, o.relative_noise},
        Describe(o),
        [&] { return KernelModel(device, o); });
  }
  return data;
}

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

void FillParameters(const hardware::Device& device,
                    const FitData& data,
                    const std::vector<double>& positions,
                    const std::vector<bool>& held,
                    const Eigen::MatrixXd& covariance,
                    double model_sigma,
                    bool name_runs,
                    Fit& fit) {
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
    const ParameterInfo& info = data.infos[i];
    FittedParameter parameter;
    parameter.name = info.name;
    // exp(log(bound)) may round past the bound that a file is read against.
    parameter.value =
        held[i] ? info.prior
                : std::clamp(
                      FromFitScale(info, positions[i]), info.lower, info.upper);
    parameter.standard_error = std::sqrt(covariance(at, at));
    parameter.prior = info.prior;
    parameter.determined = !held[i];
    if (held[i] && name_runs) {
      parameter.determined_by =
          DeterminingRun(info, candidates, covariance, at, model_sigma);
    }
    fit.parameters.push_back(std::move(parameter));
    for (Eigen::Index j = 0; j < of_device; ++j) {
      fit.covariance.push_back(covariance(at, j));
    }
  }
}

// Refits without each run in turn; the held parameters stay held.
void LeaveOneOut(const FitData& data,
                 const std::vector<double>& positions,
                 const std::vector<bool>& held,
                 Fit& fit) {
  std::vector<std::optional<Solution>> refits(data.runs.size());
  ParallelFor(data.runs.size(), [&](size_t run) {
    refits[run] = Solve(data, positions, held, run, data.robust_scale);
  });
  for (size_t i = 0; i < data.data.size(); ++i) {
    const Datum& datum = data.data[i];
    const auto& refit = refits[datum.run];
    if (!refit) continue;
    const LogTimes times =
        EvaluateValues(data.models[datum.model], refit->positions);
    fit.runs[i].left_out = Seconds<>(std::exp(times[datum.quantity]));
  }
}

FittedRange RangeOf(const FitData& data) {
  FittedRange range;
  std::set<std::string> settings;
  bool first = true;
  for (const TimeModel& model : data.models) {
    // A kernel by itself is no step that a prediction could lie near to.
    const auto* of_step = std::get_if<StepModel>(&model);
    if (of_step == nullptr) continue;
    const model::Workload& w = of_step->workload();
    const int64_t parameters = model::TotalParameters(w.architecture);
    const auto extend = [&](int64_t value, int64_t& low, int64_t& high) {
      low = first ? value : std::min(low, value);
      high = first ? value : std::max(high, value);
    };
    extend(w.tokens(), range.min_tokens, range.max_tokens);
    extend(w.sequence_length,
           range.min_sequence_length,
           range.max_sequence_length);
    extend(parameters, range.min_parameters, range.max_parameters);
    settings.insert(SettingsOf(w));
    first = false;
  }
  range.settings.assign(settings.begin(), settings.end());
  return range;
}

// The runs of whole steps where there are any: a step is what gets predicted,
// and its parts add up to it.
std::vector<const FittedRun*> ChiefRuns(const Fit& fit) {
  const bool steps =
      std::any_of(fit.runs.begin(), fit.runs.end(), [](const FittedRun& run) {
        return run.quantity == Quantity::kStep;
      });
  std::vector<const FittedRun*> chief;
  for (const FittedRun& run : fit.runs) {
    if (!run.place) continue;
    if (!steps || run.quantity == Quantity::kStep) chief.push_back(&run);
  }
  return chief;
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
                const Eigen::MatrixXd& covariance,
                const std::vector<bool>& held,
                double model_sigma,
                Fit& fit) {
  std::vector<double> residuals;
  std::vector<double> errors;
  std::vector<double> left_out_errors;
  const std::vector<const FittedRun*> chief = ChiefRuns(fit);
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
  for (size_t i = 0; i < data.of_device; ++i) {
    if (held[i]) continue;
    const double narrowed = NarrowedTo(data, covariance, i);
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

void RequireParameters(const hardware::Device& device) {
  if (hardware::ParametersOf(device.kind).empty()) {
    throw InputError(fmt::format("{}: no step model for {} devices yet",
                                 device.name,
                                 hardware::ToText(device.kind)));
  }
}

Fit EmptyFit(const hardware::Device& device) {
  Fit fit;
  fit.name = device.name;
  fit.device = device.name;
  fit.reported_name = device.reported_name;
  fit.kind = device.kind;
  if (hardware::KindOf(device).is_host) fit.measured_device = device;
  return fit;
}

// Those of one device.
struct OwnFigures {
  std::vector<Observation> steps;
  std::vector<KernelObservation> kernels;
};

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
    } else if (observation.device_count != 1) {
      ++of_several;
    } else {
      own.steps.push_back(observation);
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
        "needs runs on one",
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

Discrepancy Fit::ModelDiscrepancy() const {
  std::vector<Place> places;
  std::vector<double> residuals;
  for (const FittedRun* run : ChiefRuns(*this)) {
    places.push_back(*run->place);
    residuals.push_back(std::log(run->modelled / run->measured));
  }
  return {std::move(places), residuals};
}

std::vector<double> Fit::Values() const {
  std::vector<double> values;
  values.reserve(parameters.size());
  for (const FittedParameter& parameter : parameters) {
    values.push_back(parameter.value);
  }
  return values;
}

std::vector<std::string> Refusals(const Fit& fit) {
  std::vector<std::string> lines;
  for (const FittedParameter& parameter : fit.parameters) {
    if (parameter.determined) continue;
    lines.push_back(fmt::format(
        "{}: {} is not determined by {} runs, it stays at {}; would be by {}",
        fit.name,
        parameter.name,
        fit.provenance.runs,
        parameter.prior,
        parameter.determined_by));
  }
  return lines;
}

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options) {
  return FitDevice(device, observations, {}, options);
}

Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const FitOptions& options) {
  RequireParameters(device);
  const OwnFigures own = OfDevice(device, observations, kernels);
  FitData data = Collect(device, own.steps, own.kernels, options);
  const size_t count = data.infos.size();
  std::vector<bool> held(count, false);
  std::vector<double> positions = data.prior;
  Eigen::MatrixXd covariance;
  // From the priors a sharp loss would take most runs for outliers and stay
  // there: what is far off is told by the scatter that a wide one leaves.
  ModelErrors errors = {options.model_sigma, options.kernel_sigma};
  for (const double wider : kWiderScales) {
    const auto solved =
        Solve(data, positions, held, kNoRun, wider * data.robust_scale);
    if (!solved) continue;
    positions = solved->positions;
    errors = ErrorsAt(data, positions, options);
    for (Datum& datum : data.data) datum.sigma = Sigma(datum, errors);
  }
  const auto solve = [&](const std::vector<double>& from) {
    std::string message;
    std::optional<Solution> solved =
        Solve(data, from, held, kNoRun, data.robust_scale, &message);
    if (!solved) {
      throw InputError(
          fmt::format("fit of {} refused: the solver did not converge ({})",
                      device.name,
                      message));
    }
    return std::move(*solved);
  };
  Solution best = solve(positions);
  covariance = PosteriorCovariance(data, best.positions);
  // One parameter at a time, the least determined first: two that only their
  // product is known of must not both go back to their priors. Nor does one
  // that the data want elsewhere, however little they say of where: the others
  // would make up for it with values that mean nothing.
  const double allowed_cost = best.cost + kIndifferentCost;
  std::vector<bool> kept(count, false);
  while (true) {
    size_t widest = count;
    double least_narrowed = kDeterminedBelow;
    for (size_t i = 0; i < count; ++i) {
      if (held[i] || kept[i]) continue;
      const double narrowed = NarrowedTo(data, covariance, i);
      if (narrowed >= least_narrowed) {
        least_narrowed = narrowed;
        widest = i;
      }
    }
    if (widest == count) break;
    held[widest] = true;
    std::vector<double> from = best.positions;
    from[widest] = data.prior[widest];
    Solution without = solve(from);
    if (without.cost > allowed_cost) {
      held[widest] = false;
      kept[widest] = true;
      continue;
    }
    best = std::move(without);
    covariance = PosteriorCovariance(data, best.positions);
  }
  positions = std::move(best.positions);

  Fit fit = EmptyFit(device);
  FillParameters(device,
                 data,
                 positions,
                 held,
                 covariance,
                 errors.step,
                 options.name_runs,
                 fit);
  for (const Datum& datum : data.data) {
    const TimeModel& model = data.models[datum.model];
    const LogTimes times = EvaluateValues(model, positions);
    const auto* of_step = std::get_if<StepModel>(&model);
    fit.runs.push_back({.label = data.runs[datum.run],
                        .workload = data.words[datum.model],
                        .place = of_step != nullptr ? std::optional(PlaceOf(
                                                          of_step->workload()))
                                                    : std::nullopt,
                        .quantity = datum.quantity,
                        .measured = datum.measured,
                        .modelled = Seconds<>(std::exp(times[datum.quantity])),
                        .left_out = std::nullopt});
  }
  // Of one run there is nothing left without it.
  if (options.leave_one_out && data.runs.size() > 1) {
    LeaveOneOut(data, positions, held, fit);
  }
  FillErrors(data, covariance, held, options.model_sigma, fit);
  FillKernelErrors(fit);
  fit.range = RangeOf(data);
  std::set<size_t> runs;
  for (const Datum& datum : data.data) {
    if (datum.kernel()) {
      ++fit.provenance.kernels;
    } else {
      ++fit.provenance.observations;
      runs.insert(datum.run);
    }
  }
  fit.provenance.runs = static_cast<int64_t>(runs.size());
  return fit;
}

double ScatterWithPrior(double squares, double freedom, double assumed) {
  const auto weight = static_cast<double>(kScatterPriorWeight);
  return std::sqrt((squares + weight * assumed * assumed) / (freedom + weight));
}

Fit PriorFit(const hardware::Device& device) {
  RequireParameters(device);
  const auto infos = hardware::ParametersOf(device);
  Fit fit = EmptyFit(device);
  fit.provenance.source = "datasheet";
  fit.covariance.assign(infos.size() * infos.size(), 0.0);
  for (size_t i = 0; i < infos.size(); ++i) {
    FittedParameter parameter;
    parameter.name = infos[i].name;
    parameter.value = infos[i].prior;
    parameter.standard_error = infos[i].prior_sigma;
    parameter.prior = parameter.value;
    parameter.determined_by = infos[i].determined_by;
    fit.parameters.push_back(std::move(parameter));
    fit.covariance[i * infos.size() + i] =
        infos[i].prior_sigma * infos[i].prior_sigma;
  }
  return fit;
}

}  // namespace trainfare::calibrate
