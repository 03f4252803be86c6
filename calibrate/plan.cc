#include "calibrate/plan.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "calibrate/step_model.h"
#include "hardware/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

constexpr std::array<std::string_view, 5> kModels = {
    "bert-tiny", "bert-mini", "bert-small", "bert-medium", "bert-base-uncased"};
constexpr std::array<int64_t, 6> kLengths = {16, 32, 64, 128, 256, 512};
constexpr std::array<int64_t, 7> kBatches = {1, 2, 4, 8, 16, 32, 64};
// More takes long and says little that fewer did not.
constexpr int64_t kMostTokens = 4096;

// A run's median is worth more with more steps, up to where the noise of the
// machine between runs takes over.
constexpr int64_t kLeastSteps = 5;
constexpr int64_t kMostSteps = 30;
constexpr int64_t kWarmup = 2;
constexpr double kWantedSeconds = 1.0;  // of timed steps a run
// Of the median of that many steps on a shared machine, before it is known.
constexpr double kAssumedNoise = 0.02;
// Building a model with random weights and its optimizer, on one core.
constexpr double kSetUpSecondsPerParameter = 12e-9;
constexpr double kSetUpSeconds = 0.02;

constexpr double kNormalQuantile90 = 1.2815515655446004;

// Rows: the gradients of the quantities that a run measures.
Eigen::MatrixXd Sensitivities(const LogTimes& times, Eigen::Index parameters) {
  std::vector<Eigen::Index> finite;
  for (size_t q = 0; q < kQuantities; ++q) {
    if (std::isfinite(times.log_time[q])) {
      finite.push_back(static_cast<Eigen::Index>(q));
    }
  }
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(finite.size()), parameters);
  for (size_t i = 0; i < finite.size(); ++i) {
    rows.row(static_cast<Eigen::Index>(i)) =
        Eigen::Map<const Eigen::RowVectorXd>(
            times.gradient[static_cast<size_t>(finite[i])].data(), parameters);
  }
  return rows;
}

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
  for (size_t i = 0; i < infos.size(); ++i) {
    point.positions.push_back(ToFitScale(infos[i], fit.parameters[i].value));
  }
  point.covariance =
      Eigen::Map<const Eigen::MatrixXd>(fit.covariance.data(), count, count);
  return point;
}

}  // namespace

std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models) {
  std::vector<std::string> names = models;
  if (names.empty()) names.assign(kModels.begin(), kModels.end());
  std::vector<model::Workload> runs;
  for (const std::string& name : names) {
    const model::Architecture& architecture = model::FindArchitecture(name);
    for (const model::Precision precision : precisions) {
      if (!device.MatrixPeak(precision)) continue;
      for (const int64_t length : kLengths) {
        if (length > architecture.max_sequence_length().value_or(length)) {
          continue;
        }
        for (const int64_t batch : kBatches) {
          if (batch * length > kMostTokens) continue;
          model::Workload workload;
          workload.architecture = architecture;
          workload.batch = batch;
          workload.sequence_length = length;
          workload.precision = precision;
          workload.optimizer.implementation =
              model::OptimizerImplementation::kFused;
          runs.push_back(std::move(workload));
        }
      }
    }
  }
  return runs;
}

struct Planner::State {
  PlanOptions options;
  std::vector<StepModel> candidates;
  std::vector<StepModel> scenarios;
  std::set<std::string> done;           // workloads as Describe writes them
  std::optional<model::Workload> last;  // the trainer still has its model

  // Mean over the scenarios of g g^T: the mean variance is its product with
  // the covariance, element by element.
  Eigen::MatrixXd MeanOuterProduct(const std::vector<double>& positions) const {
    const auto count = static_cast<Eigen::Index>(positions.size());
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(count, count);
    for (const StepModel& scenario : scenarios) {
      const LogTimes times = scenario.Evaluate(positions);
      const Eigen::Map<const Eigen::VectorXd> gradient(
          times.GradientOf(Quantity::kStep).data(), count);
      sum.noalias() += gradient * gradient.transpose();
    }
    return sum / static_cast<double>(scenarios.size());
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
  if (options.scenarios.empty()) options.scenarios = options.candidates;
  for (const model::Workload& workload : options.candidates) {
    state_->candidates.emplace_back(device, workload);
  }
  for (const model::Workload& workload : options.scenarios) {
    state_->scenarios.emplace_back(device, workload);
  }
  state_->options = std::move(options);
}

Planner::~Planner() = default;

void Planner::Done(const model::Workload& workload) {
  state_->done.insert(Describe(workload));
  state_->last = workload;
}

std::optional<PlannedRun> Planner::Next(const Fit& fit,
                                        model::Seconds<> longest) const {
  const FitPoint point = PointOf(fit);
  const auto count = point.covariance.rows();
  const Eigen::MatrixXd asked = state_->MeanOuterProduct(point.positions);
  const double noise = std::hypot(state_->options.model_sigma, kAssumedNoise);
  double best = 0.0;
  std::optional<PlannedRun> next;
  for (const StepModel& candidate : state_->candidates) {
    const model::Workload& workload = candidate.workload();
    if (state_->done.contains(Describe(workload))) continue;
    const LogTimes times = candidate.Evaluate(point.positions);
    const double step_s = std::exp(times[Quantity::kStep]);
    PlannedRun run;
    run.steps = std::clamp(
        static_cast<int64_t>(kWantedSeconds / step_s), kLeastSteps, kMostSteps);
    run.warmup = kWarmup;
    const double duration_s =
        state_->SetUpSeconds(workload) +
        step_s * static_cast<double>(run.steps + run.warmup);
    if (duration_s > model::ToSeconds(longest)) continue;
    // trace(A (C - C')) with C' as above, for all quantities of the run.
    const Eigen::MatrixXd rows = Sensitivities(times, count);
    const Eigen::MatrixXd moved = rows * point.covariance;
    Eigen::MatrixXd spread = moved * rows.transpose();
    spread.diagonal().array() += noise * noise;
    const Eigen::MatrixXd solved = spread.llt().solve(moved);
    const double taken = (asked * moved.transpose() * solved).trace();
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

double Planner::ExpectedInterval(const Fit& fit) const {
  const FitPoint point = PointOf(fit);
  const Eigen::MatrixXd asked = state_->MeanOuterProduct(point.positions);
  const double variance = asked.cwiseProduct(point.covariance).sum();
  return kNormalQuantile90 * std::sqrt(std::max(variance, 0.0));
}

}  // namespace trainfare::calibrate
