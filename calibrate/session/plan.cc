#include "calibrate/session/plan.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fit_positions.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/trainer_rules.h"

namespace trainfare::calibrate {
namespace {

constexpr auto kAskedModels =
    std::to_array<std::string_view>({"bert-small",
                                     "bert-medium",
                                     "bert-base-uncased",
                                     "bert-large-uncased",
                                     "roberta-base",
                                     "gpt2"});
// A run's median is worth more with more steps, up to where the noise of the
// machine between runs takes over.
constexpr int64_t kLeastSteps = 5;
constexpr int64_t kMostSteps = 30;
constexpr double kWantedSeconds = 1.0;  // of timed steps a run
// The noise of the median of that many steps on a shared machine, before it is
// known.
constexpr double kAssumedNoise = 0.02;
constexpr double kSetUpSeconds = 0.02;
constexpr double kOverrun = 3.0;
constexpr double kLeastRunSeconds = 2.0;

struct FitPoint {
  std::vector<double> positions;
  Eigen::MatrixXd covariance;
};

FitPoint PointOf(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  const auto count = static_cast<Eigen::Index>(infos.size());
  ENSURE(fit.covariance.size() == infos.size() * infos.size(),
         "a fit has the parameters of its kind");
  FitPoint point;
  point.positions = PositionsOf(fit);
  point.covariance =
      Eigen::Map<const Eigen::MatrixXd>(fit.covariance.data(), count, count);
  return point;
}

}  // namespace

std::vector<model::Workload> RunsHere(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models) {
  const hardware::RunGrid* grid = hardware::KindOf(device).runs;
  if (grid == nullptr) return CandidateRuns(device, precisions, models);
  std::vector<std::string> names = models;
  if (names.empty()) names.assign(grid->models.begin(), grid->models.end());
  const model::Bytes<> most = device.memory_capacity * grid->memory_share;
  std::vector<model::Workload> runs;
  model::Workload workload;
  workload.optimizer.implementation = model::OptimizerImplementation::kFused;
  for (const std::string& name : names) {
    workload.architecture = model::FindArchitecture(name);
    const bool fuses = model::HasPlainBlock(workload.architecture);
    for (const model::Precision precision : precisions) {
      if (!device.MatrixPeak(precision)) continue;
      workload.precision = precision;
      for (const model::Fusion stack : grid->stacks) {
        // The trainer has no fused stack of other blocks on a GPU.
        if (stack == model::Fusion::kFused && !fuses) continue;
        workload.stack.fusion = stack;
        for (const int64_t length : grid->lengths) {
          if (!TakesLength(workload.architecture, length)) continue;
          workload.sequence_length = length;
          for (const int64_t batch : grid->batches) {
            workload.batch = batch;
            if (model::EstimateMemory(workload, {}).total() <= most) {
              runs.push_back(workload);
            }
          }
        }
      }
    }
  }
  return runs;
}

std::vector<model::Workload> DefaultScenarios(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions) {
  if (!hardware::KindOf(device).is_host) return {};
  return CandidateRuns(
      device, precisions, {kAskedModels.begin(), kAskedModels.end()});
}

void RequireTrainable(const hardware::Device& device,
                      model::Precision precision) {
  hardware::RequirePrecision(device, precision);
  model::RequireTrainerPrecision(precision);
}

PlanOptions PlanHere(const hardware::Device& device,
                     const std::vector<model::Precision>& precisions,
                     const std::vector<std::string>& models) {
  for (const model::Precision precision : precisions) {
    RequireTrainable(device, precision);
  }
  for (const std::string& name : models) {
    model::RequireTrainerNetwork(model::FindArchitecture(name));
  }
  PlanOptions plan;
  plan.candidates = RunsHere(device, precisions, models);
  if (models.empty()) plan.scenarios = DefaultScenarios(device, precisions);
  return plan;
}

model::Seconds<> PlannedRun::longest_duration() const {
  return std::max(model::Second(kLeastRunSeconds),
                  expected_duration * kOverrun);
}

std::vector<PlannedRun> PlanAhead(const hardware::Device& device,
                                  PlanOptions options,
                                  model::Seconds<> budget) {
  Planner planner(device, std::move(options));
  Fit known = PriorFit(device);
  std::vector<PlannedRun> runs;
  model::Seconds<> left = budget;
  while (const std::optional<PlannedRun> next =
             planner.Next(known, std::min(left, budget * kLongestRunShare))) {
    left -= next->expected_duration;
    known = planner.After(known, next->workload);
    planner.Done(next->workload);
    runs.push_back(*next);
  }
  return runs;
}

struct Planner::State {
  PlanOptions options;
  // The candidates, then those scenarios that are none of them.
  std::vector<StepModel> workloads;
  std::vector<std::string> names;  // of these, as Describe writes them
  Eigen::Index candidate_count = 0;
  std::vector<Eigen::Index> asked;      // the scenarios
  std::set<std::string> done;           // workloads as Describe writes them
  std::optional<model::Workload> last;  // the trainer still has its model

  // Where the workloads and the runs done stand, and the covariances of the
  // model's error there before any run: what a run leaves changes with each,
  // these do not.
  std::vector<ErrorPoint> places;
  std::vector<ErrorPoint> done_places;
  Eigen::MatrixXd errors;       // of workloads
  Eigen::MatrixXd across;       // of workloads (rows) and runs
  Eigen::MatrixXd done_errors;  // of runs, with their noise

  double ErrorCovariance(const ErrorPoint& a, const ErrorPoint& b) const {
    return options.model_sigma * options.model_sigma * ErrorCorrelation(a, b);
  }

  // Once the workloads are there.
  void FillErrors() {
    for (const StepModel& workload : workloads) {
      places.push_back(ErrorPointOf(PlaceOf(workload.workload())));
    }
    const auto count = static_cast<Eigen::Index>(places.size());
    errors.resize(count, count);
    across.resize(count, 0);
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j) {
        errors(i, j) = ErrorCovariance(places[static_cast<size_t>(i)],
                                       places[static_cast<size_t>(j)]);
        errors(j, i) = errors(i, j);
      }
    }
  }

  void AddDone(const ErrorPoint& place) {
    done_places.push_back(place);
    const auto count = static_cast<Eigen::Index>(done_places.size());
    const Eigen::Index last_run = count - 1;
    done_errors.conservativeResize(count, count);
    for (Eigen::Index e = 0; e < count; ++e) {
      done_errors(e, last_run) =
          ErrorCovariance(done_places[static_cast<size_t>(e)], place);
      done_errors(last_run, e) = done_errors(e, last_run);
    }
    done_errors(last_run, last_run) += kAssumedNoise * kAssumedNoise;
    across.conservativeResize(Eigen::NoChange, count);
    for (Eigen::Index i = 0; i < across.rows(); ++i) {
      across(i, last_run) =
          ErrorCovariance(places[static_cast<size_t>(i)], place);
    }
  }

  // K of all workloads; `log_times` gets their times.
  Eigen::MatrixXd Unknown(const FitPoint& point,
                          std::vector<LogTimes>& log_times) const {
    const auto count = static_cast<Eigen::Index>(workloads.size());
    const auto parameters = point.covariance.rows();
    Eigen::MatrixXd gradients(count, parameters);
    for (Eigen::Index i = 0; i < count; ++i) {
      const StepModel& workload = workloads[static_cast<size_t>(i)];
      log_times.push_back(workload.Evaluate(point.positions));
      gradients.row(i) = Eigen::Map<const Eigen::RowVectorXd>(
          log_times.back().GradientOf(Quantity::kStep).data(), parameters);
    }
    Eigen::MatrixXd unknown =
        gradients * point.covariance * gradients.transpose() + errors;
    if (done_places.empty()) return unknown;
    unknown.noalias() -= across * done_errors.llt().solve(across.transpose());
    return unknown;
  }

  // D of one of the workloads, after the runs done.
  double ErrorAt(Eigen::Index at) const {
    if (done_places.empty()) return errors(at, at);
    const Eigen::VectorXd beside = across.row(at).transpose();
    return errors(at, at) - beside.dot(done_errors.llt().solve(beside));
  }

  double SetUpSeconds(const model::Workload& workload) const {
    if (last && last->architecture == workload.architecture &&
        last->precision == workload.precision &&
        last->optimizer == workload.optimizer) {
      return kSetUpSeconds;
    }
    return kSetUpSeconds + kSetUpSecondsPerParameter *
                               static_cast<double>(model::TotalParameters(
                                   workload.architecture));
  }
};

Planner::Planner(const hardware::Device& device, PlanOptions options)
    : state_(std::make_unique<State>()) {
  ENSURE(!options.candidates.empty(), "a plan chooses among candidates");
  state_->options = std::move(options);
  const PlanOptions& plan = state_->options;
  std::map<std::string, Eigen::Index> found;
  const auto index_of = [&](const model::Workload& workload) {
    std::string name = Describe(workload);
    const auto next = static_cast<Eigen::Index>(state_->workloads.size());
    const auto [place, is_new] = found.emplace(name, next);
    if (is_new) {
      state_->workloads.emplace_back(device, workload);
      state_->names.push_back(std::move(name));
    }
    return place->second;
  };
  for (const model::Workload& workload : plan.candidates) index_of(workload);
  state_->candidate_count = static_cast<Eigen::Index>(state_->workloads.size());
  // Asked are the scenarios, or the candidates themselves.
  for (const model::Workload& workload :
       plan.scenarios.empty() ? plan.candidates : plan.scenarios) {
    state_->asked.push_back(index_of(workload));
  }
  state_->FillErrors();
}

Planner::~Planner() = default;

void Planner::Done(const model::Workload& workload) {
  if (state_->done.insert(Describe(workload)).second) {
    state_->AddDone(ErrorPointOf(PlaceOf(workload)));
  }
  state_->last = workload;
}

std::optional<PlannedRun> Planner::Next(const Fit& fit,
                                        model::Seconds<> longest) const {
  const FitPoint point = PointOf(fit);
  std::vector<LogTimes> log_times;
  const Eigen::MatrixXd unknown = state_->Unknown(point, log_times);
  double best = 0.0;
  std::optional<PlannedRun> next;
  for (Eigen::Index i = 0; i < state_->candidate_count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (state_->done.contains(state_->names[at])) continue;
    const model::Workload& workload = state_->workloads[at].workload();
    const double step_s = std::exp(log_times[at][Quantity::kStep]);
    PlannedRun run;
    run.warmup = kWarmupSteps;
    const double set_up_s = state_->SetUpSeconds(workload);
    // Fewer steps than wanted where time is short.
    const double affordable_s = model::ToSeconds(longest) - set_up_s -
                                step_s * static_cast<double>(kWarmupSteps);
    const double wanted_s = std::min(kWantedSeconds, affordable_s);
    run.steps = std::clamp(
        static_cast<int64_t>(wanted_s / step_s), kLeastSteps, kMostSteps);
    const double duration_s =
        set_up_s + step_s * static_cast<double>(run.steps + run.warmup);
    if (duration_s > model::ToSeconds(longest)) continue;
    const double taken = unknown.col(i)(state_->asked).squaredNorm() /
                         (unknown(i, i) + kAssumedNoise * kAssumedNoise);
    const double rate = taken / duration_s;
    // A clear lead, so that rounding never decides between equals.
    if (rate > best * (1.0 + 1e-9)) {
      best = rate;
      run.workload = workload;
      run.expected_duration = model::Second(duration_s);
      next = std::move(run);
    }
  }
  return next;
}

Fit Planner::After(const Fit& fit, const model::Workload& workload) const {
  const auto name =
      std::find(state_->names.begin(), state_->names.end(), Describe(workload));
  ENSURE(name != state_->names.end(), "a run that is no candidate");
  const Eigen::Index at = name - state_->names.begin();
  const FitPoint point = PointOf(fit);
  const LogTimes times =
      state_->workloads[static_cast<size_t>(at)].Evaluate(point.positions);
  const Eigen::VectorXd gradient = Eigen::Map<const Eigen::VectorXd>(
      times.GradientOf(Quantity::kStep).data(), point.covariance.rows());
  const Eigen::VectorXd spread = point.covariance * gradient;
  const double variance = gradient.dot(spread) + state_->ErrorAt(at) +
                          kAssumedNoise * kAssumedNoise;
  Fit after = fit;
  Eigen::Map<Eigen::MatrixXd>(after.covariance.data(),
                              point.covariance.rows(),
                              point.covariance.cols()) -=
      spread * spread.transpose() / variance;
  return after;
}

double Planner::ExpectedInterval(const Fit& fit) const {
  std::vector<LogTimes> log_times;
  const Eigen::MatrixXd unknown = state_->Unknown(PointOf(fit), log_times);
  return kNormalQuantile90 *
         std::sqrt(std::max(unknown.diagonal()(state_->asked).mean(), 0.0));
}

}  // namespace trainfare::calibrate
