#include "calibrate/fit/rank_fit.h"

#include <ceres/ceres.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "calibrate/fit/data_parallel.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/models/kind.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;
using model::Seconds;

// How far the share may be off before a run over the ranks is seen, as the
// standard deviation of its logarithm: threads that share a processor's cores
// and memory get between all and half of what their number says; what a GPU
// loses beside others is clocks, at most. Assumptions, wide on purpose.
constexpr double kSharedProcessorSigma = 0.3;
constexpr double kOwnDeviceSigma = 0.1;

// One figure of a run over ranks.
struct Figure {
  Observation observation;
  const std::vector<model::Bytes<>>* buckets = nullptr;
  hardware::StepTime<double> alone;  // by the fit of one rank
  double sigma = 0;
};

Seconds<> PartOf(const RankStepTime& step, Quantity quantity) {
  switch (quantity) {
    case Quantity::kForward:
      return step.computing.forward.total();
    case Quantity::kBackward:
      return step.backward();
    case Quantity::kOptimizer:
      return step.computing.optimizer.total();
    case Quantity::kStep:
      return step.total();
    case Quantity::kKernel:
      break;
  }
  ENSURE(false, "kernels by themselves are not over ranks");
}

Seconds<> Modelled(const Figure& figure, const RankFit& ranks) {
  return PartOf(
      StepOverRanks(
          figure.observation.workload, figure.alone, ranks, *figure.buckets),
      figure.observation.quantity);
}

// Of log(share): how far it is off its prior, and the times off what was
// measured, each in its own standard deviations.
class ShareResiduals {
 public:
  ShareResiduals(const std::vector<Figure>& figures,
                 double prior_sigma,
                 const RankFit& ranks)
      : figures_(figures), prior_sigma_(prior_sigma), ranks_(ranks) {}

  bool operator()(double const* const* log_share, double* residuals) const {
    RankFit moved = ranks_;
    moved.share = std::exp(log_share[0][0]);
    *residuals++ =
        (log_share[0][0] - std::log(ranks_.share_prior)) / prior_sigma_;
    for (const Figure& figure : figures_) {
      *residuals++ =
          std::log(Modelled(figure, moved) / figure.observation.measured) /
          figure.sigma;
    }
    return true;
  }
  int size() const { return static_cast<int>(figures_.size()) + 1; }

 private:
  const std::vector<Figure>& figures_;
  double prior_sigma_;
  const RankFit& ranks_;
};

// Least squares over log(share). There is one minimum: every time falls with
// the share.
void FitShare(const std::vector<Figure>& figures,
              double prior_sigma,
              RankFit& ranks) {
  ShareResiduals residuals(figures, prior_sigma, ranks);
  ceres::DynamicNumericDiffCostFunction<ShareResiduals, ceres::CENTRAL> cost(
      &residuals, ceres::DO_NOT_TAKE_OWNERSHIP);
  cost.AddParameterBlock(1);
  cost.SetNumResiduals(residuals.size());
  ceres::Problem::Options unowned;
  unowned.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem problem(unowned);
  double log_share = std::log(ranks.share_prior);
  problem.AddResidualBlock(&cost, nullptr, &log_share);
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-12;
  options.parameter_tolerance = 1e-10;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  if (summary.termination_type != ceres::CONVERGENCE) {
    throw InputError("the share of a rank does not converge: " +
                     summary.message);
  }
  std::vector<double> slopes(static_cast<size_t>(residuals.size()));
  std::vector<double> values(slopes.size());
  const double* const at[] = {&log_share};
  double* jacobian[] = {slopes.data()};
  cost.Evaluate(at, values.data(), jacobian);
  double information = 0.0;
  for (const double slope : slopes) information += slope * slope;
  ranks.share = std::exp(log_share);
  ranks.share_error = std::sqrt(1.0 / information);
  ranks.share_determined = !figures.empty();
}

// Of one group, by number of ranks and backend.
struct Group {
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredAllReduce> all_reduces;

  std::string transport() const {
    for (const MeasuredAllReduce& one : all_reduces) {
      if (!one.transport.empty()) return one.transport;
    }
    return "";
  }
  // Of a rank; 0: not said.
  int64_t threads() const {
    return runs.empty() ? all_reduces.front().threads : runs.front().threads;
  }
};

// Whether ranks shared one processor, and the share of it that a rank's
// threads are of those of a rank alone.
void PlaceRanks(const hardware::Device& device,
                const Group& group,
                int64_t threads_alone,
                RankFit& ranks) {
  if (!hardware::KindOf(device).is_host) return;
  const auto count = static_cast<double>(ranks.network.ranks);
  const int64_t threads = group.threads();
  const bool known = threads > 0 && threads_alone > 0;
  const std::string transport = group.transport();
  const bool within = transport.empty() ? !known || threads < threads_alone
                                        : transport.ends_with("within a host");
  if (!within) return;
  ranks.ranks_per_device = ranks.network.ranks;
  // Threads beyond the cores wait for them.
  ranks.share_prior = 1.0 / count;
  if (known) {
    ranks.share_prior = std::min(
        ranks.share_prior,
        static_cast<double>(threads) / static_cast<double>(threads_alone));
  }
}

std::vector<Figure> FiguresOf(const Group& group,
                              const Predictor& predictor,
                              std::vector<std::string>& notes) {
  std::vector<Figure> figures;
  for (const MeasuredRun& run : group.runs) {
    try {
      const hardware::StepTime<double> alone = predictor.Time(run.workload);
      for (Observation& observation : ObservationsOf(run)) {
        const double sigma =
            std::hypot(observation.relative_noise, FitOptions().model_sigma);
        figures.push_back({std::move(observation), &run.buckets, alone, sigma});
      }
    } catch (const InputError& error) {
      notes.push_back(fmt::format("{}: {}", run.id, error.what()));
    }
  }
  return figures;
}

void FillRows(const Group& group,
              const std::vector<Figure>& figures,
              RankFit& ranks) {
  const RankNetwork& network = ranks.network;
  for (const MeasuredAllReduce& one : group.all_reduces) {
    const bool beside = one.computation_speed.has_value();
    const RingFit& ring = beside ? network.beside : network.alone;
    ranks.all_reduces.push_back(
        {one.size,
         beside,
         one.time,
         model::RingAllReduceTime(
             one.ranks, one.size, ring.ring.step_latency, ring.ring.link)});
  }
  int64_t steps = 0;
  double squares = 0;
  for (const Figure& figure : figures) {
    const Observation& o = figure.observation;
    const Seconds<> modelled = Modelled(figure, ranks);
    ranks.runs.push_back({.label = o.label,
                          .workload = Describe(o.workload),
                          .place = std::nullopt,
                          .quantity = o.quantity,
                          .measured = o.measured,
                          .modelled = modelled,
                          .left_out = std::nullopt});
    if (o.quantity == Quantity::kStep) {
      const double residual = std::log(modelled / o.measured);
      squares += residual * residual;
      ++steps;
    }
  }
  if (steps == 0) return;
  ranks.scatter = ScatterWithPrior(
      squares, static_cast<double>(steps - 1), FitOptions().model_sigma);
}

}  // namespace

RankFits FitRanks(const hardware::Device& device,
                  const Fit& fit,
                  const RankRecords& records) {
  RankFits result;
  std::map<std::pair<int64_t, std::string>, Group> groups;
  int64_t threads_alone = 0;
  int64_t of_others = 0;
  for (const MeasuredRun& run : records.runs) {
    if (!IsDevice(device, run.device)) continue;
    if (run.device_count == 1) {
      threads_alone = std::max(threads_alone, run.threads);
    } else {
      groups[{run.device_count, run.backend}].runs.push_back(run);
    }
  }
  for (const MeasuredAllReduce& one : records.all_reduces) {
    // Records of old do not say what computed.
    if (!one.device.empty() && !IsDevice(device, one.device)) {
      ++of_others;
      continue;
    }
    groups[{one.ranks, one.backend}].all_reduces.push_back(one);
  }
  if (of_others > 0) {
    result.notes.push_back(fmt::format(
        "{} all-reduces between other devices are not used", of_others));
  }
  if (groups.empty()) return result;
  const Predictor predictor(device, fit);
  for (const auto& [key, group] : groups) {
    const auto& [count, backend] = key;
    RankFit ranks;
    ranks.backend = backend;
    ranks.source = records.source;
    try {
      ranks.network = FitNetwork(group.all_reduces, count);
    } catch (const InputError& error) {
      result.notes.push_back(
          fmt::format("{} ranks: no ring is fitted, {} runs over them are not "
                      "used: {}; `trainfare-trainer bench collectives` times "
                      "all-reduces",
                      count,
                      group.runs.size(),
                      error.what()));
      continue;
    }
    ranks.transport = group.transport();
    PlaceRanks(device, group, threads_alone, ranks);
    const std::vector<Figure> figures =
        FiguresOf(group, predictor, result.notes);
    try {
      FitShare(
          figures,
          ranks.ranks_per_device > 1 ? kSharedProcessorSigma : kOwnDeviceSigma,
          ranks);
    } catch (const InputError& error) {
      result.notes.push_back(
          fmt::format("{} ranks are not fitted: {}", count, error.what()));
      continue;
    }
    FillRows(group, figures, ranks);
    result.groups.push_back(std::move(ranks));
  }
  return result;
}

}  // namespace trainfare::calibrate
