#include "calibrate/fit/rank_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "calibrate/fit/data_parallel.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/problem.h"
#include "calibrate/fit/rank_prior.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/kind.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;
using model::Seconds;

// How far the share may be off before a run over the ranks is seen, as the
// standard deviation of its logarithm, where ranks share a processor: threads
// that share its cores and memory get between all and half of what their number
// says. An assumption, wide on purpose.
constexpr double kSharedProcessorSigma = 0.3;

// One figure of a run over ranks.
struct Figure {
  Observation observation;
  std::vector<model::Bytes<>> buckets;  // empty: the default
  hardware::StepTime<double> alone;     // by the fit of one rank
  double sigma = 0;
};

Seconds<> PartOf(const RankStepTime& step, Quantity quantity) {
  switch (quantity) {
    case Quantity::kForward:
      return step.forward();
    case Quantity::kBackward:
      return step.backward();
    case Quantity::kOptimizer:
      return step.optimizer();
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
          figure.observation.workload, figure.alone, ranks, figure.buckets),
      figure.observation.quantity);
}

// What one group of ranks is fitted to, and what is assumed of it before.
struct ShareFit {
  const std::vector<Figure>& figures;
  double share_sigma = 0;
  double host_sigma = 0;  // 0: the host adds nothing
};

// Least squares over log(share) and, where the host adds to a step, log(host).
// There is one minimum: every time falls with the share, and only steps grow
// with the host.
void FitShare(const ShareFit& fit, RankFit& ranks) {
  const bool has_host = fit.host_sigma > 0;
  std::vector<BoundedParameter> parameters = {
      {.prior = std::log(ranks.share_prior),
       .prior_sigma = fit.share_sigma,
       .lower = std::log(kLeastShare),
       .upper = std::log(kMostShare)}};
  if (has_host) {
    const double prior = ranks.host_prior.base();
    parameters.push_back({.prior = std::log(prior),
                          .prior_sigma = fit.host_sigma,
                          .lower = std::log(prior / internal::kFarthestHost),
                          .upper = std::log(prior * internal::kFarthestHost)});
  }
  FitProblem problem(parameters, /*robust_scale=*/0.0);
  if (!fit.figures.empty()) {
    problem.Add(ByDifferences(
        fit.figures.size(),
        parameters.size(),
        [&](std::span<const double> logs, std::span<double> residuals) {
          RankFit moved = ranks;
          moved.share = std::exp(logs[0]);
          if (has_host) moved.host = Seconds<>(std::exp(logs[1]));
          for (size_t i = 0; i < fit.figures.size(); ++i) {
            const Figure& figure = fit.figures[i];
            residuals[i] = std::log(Modelled(figure, moved) /
                                    figure.observation.measured) /
                           figure.sigma;
          }
        }));
  }
  std::string message;
  const std::optional<Solution> solution =
      Solve(problem, PriorPositions(problem), {}, &message);
  if (!solution) {
    throw InputError("the share of a rank does not converge: " + message);
  }
  const Eigen::MatrixXd covariance =
      PosteriorCovariance(problem, solution->positions);
  ranks.share = std::exp(solution->positions[0]);
  ranks.share_error = std::sqrt(covariance(0, 0));
  ranks.share_determined = !fit.figures.empty();
  if (!has_host) return;
  ranks.host = Seconds<>(std::exp(solution->positions[1]));
  ranks.host_error = std::sqrt(covariance(1, 1));
  ranks.host_share_correlation =
      covariance(0, 1) / std::sqrt(covariance(0, 0) * covariance(1, 1));
  ranks.host_determined = ranks.host_error < kDeterminedBelow * fit.host_sigma;
}

// What was measured of one group, by number of ranks and backend.
struct Group {
  std::vector<MeasuredRun> runs;
  std::vector<Observation> observations;
  std::vector<MeasuredCollective> collectives;

  std::string transport() const {
    for (const MeasuredCollective& one : collectives) {
      if (!one.transport.empty()) return one.transport;
    }
    return "";
  }
  // The threads of a rank; 0: not said.
  int64_t threads() const {
    if (!runs.empty()) return runs.front().threads;
    return collectives.empty() ? 0 : collectives.front().threads;
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
  const bool within = transport.empty()
                          ? !known || threads < threads_alone
                          : ReachOf(transport) == RankReach::kWithinHost;
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
  const auto add = [&](const model::Workload& workload,
                       std::vector<Observation> observations,
                       const std::vector<model::Bytes<>>& buckets,
                       const std::string& label) {
    try {
      const hardware::StepTime<double> alone = predictor.Time(workload);
      for (Observation& observation : observations) {
        const double sigma =
            std::hypot(observation.relative_noise, FitOptions().model_sigma);
        figures.push_back({std::move(observation), buckets, alone, sigma});
      }
    } catch (const InputError& error) {
      notes.push_back(fmt::format("{}: {}", label, error.what()));
    }
  };
  for (const MeasuredRun& run : group.runs) {
    add(run.workload, ObservationsOf(run), run.buckets, run.id);
  }
  for (const Observation& one : group.observations) {
    add(one.workload, {one}, {}, one.label);
  }
  return figures;
}

void FillRows(const Group& group,
              const std::vector<Figure>& figures,
              RankFit& ranks) {
  const RankNetwork& network = ranks.network;
  for (const MeasuredCollective& one : group.collectives) {
    const bool beside = one.computation_speed.has_value();
    const RingFit& ring = beside ? network.beside : network.alone;
    if (one.collective != model::Collective::kAllReduce) continue;
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
                          .devices = o.device_count,
                          .hosts = o.hosts,
                          .assumed = o.assumed,
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

// Records of a device's ranks: what each number of them over each backend did.
struct RankGroups {
  std::map<std::pair<int64_t, std::string>, Group> all;
  int64_t threads_alone = 0;  // of a run without other ranks; 0: none
};

RankGroups GroupsOf(const hardware::Device& device,
                    const RankRecords& records,
                    std::vector<std::string>& notes) {
  RankGroups groups;
  int64_t of_others = 0;
  for (const MeasuredRun& run : records.runs) {
    if (!IsDevice(device, run.device)) continue;
    if (run.device_count == 1) {
      groups.threads_alone = std::max(groups.threads_alone, run.threads);
    } else {
      groups.all[{run.device_count, run.backend}].runs.push_back(run);
    }
  }
  for (const MeasuredCollective& one : records.collectives) {
    // Records of old do not say what computed.
    if (!one.device.empty() && !IsDevice(device, one.device)) {
      ++of_others;
      continue;
    }
    groups.all[{one.ranks, one.backend}].collectives.push_back(one);
  }
  for (const Observation& one : records.observations) {
    if (!IsDevice(device, one.device)) continue;
    groups.all[{one.device_count, ""}].observations.push_back(one);
  }
  if (of_others > 0) {
    notes.push_back(fmt::format(
        "{} all-reduces between other devices are not used", of_others));
  }
  return groups;
}

}  // namespace

RankFits FitRanks(const hardware::Device& device,
                  const Fit& fit,
                  const RankRecords& records) {
  RankFits result;
  const RankGroups groups = GroupsOf(device, records, result.notes);
  if (groups.all.empty()) return result;
  const Predictor predictor(device, fit);
  const hardware::KindFacts& facts = hardware::FactsOfKind(device.kind);
  for (const auto& [key, group] : groups.all) {
    const auto& [count, backend] = key;
    RankFit ranks;
    ranks.backend = backend;
    ranks.source = records.source;
    try {
      ranks.network = FitNetwork(group.collectives, count);
    } catch (const InputError& error) {
      result.notes.push_back(
          fmt::format("{} ranks: no ring is fitted, {} runs over them are not "
                      "used: {}; `trainfare-trainer bench collectives` times "
                      "all-reduces",
                      count,
                      group.runs.size() + group.observations.size(),
                      error.what()));
      continue;
    }
    ranks.transport = group.transport();
    PlaceRanks(device, group, groups.threads_alone, ranks);
    ranks.host = ranks.host_prior = facts.rank_host;
    const std::vector<Figure> figures =
        FiguresOf(group, predictor, result.notes);
    try {
      FitShare({figures,
                ranks.ranks_per_device > 1 ? kSharedProcessorSigma
                                           : internal::kRankShareSigma,
                facts.rank_host_sigma},
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
