#include "scenarios/job/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/parallel.h"
#include "model/sharding.h"
#include "scenarios/job/exchange.h"

namespace trainfare::scenarios {
namespace {

using model::Seconds;

// What sharing training state adds to that: copies into and out of gathered
// buffers, gathers that the stack issues late. Rows of fms-acceleration over 2
// to 8 GPUs scatter no more than those of one; theirs is one device.
constexpr double kSharedStateSigma = 0.05;

// A step over ranks or its backward pass, as shares of its time, and its
// standard deviation by what the group of ranks leaves open.
struct RanksPart {
  double exposed = 0;
  double host = 0;
  double log_sigma = 0;
  double link = 0;  // the same by a link that nobody measured
};

// Both of one step.
struct RanksParts {
  RanksPart step;
  RanksPart backward;
};

RanksParts PartsOf(const calibrate::RankStepTime& over_ranks) {
  const Seconds<> total = over_ranks.total();
  RanksParts parts;
  parts.step.exposed = (over_ranks.exposed + over_ranks.host_update) / total;
  parts.step.host = over_ranks.host / total;
  parts.step.log_sigma = over_ranks.log_sigma;
  // A forward pass alone has no backward pass.
  const Seconds<> backward = over_ranks.backward();
  if (backward > Seconds<>()) {
    parts.backward.exposed = over_ranks.exposed / backward;
  }
  parts.backward.log_sigma = over_ranks.backward_log_sigma;
  return parts;
}

// `ranks` on a link that is slower by a standard deviation of what a ring gets
// of it, where nobody measured that.
calibrate::RankFit WithSlowerRing(calibrate::RankFit ranks, double sigma) {
  const double slower = std::exp(-sigma);
  for (calibrate::RingFit* ring :
       {&ranks.network.alone, &ranks.network.beside}) {
    ring->ring.link = ring->ring.link * slower;
  }
  return ranks;
}

// The same of the network between hosts.
calibrate::RankFit WithSlowerNetwork(calibrate::RankFit ranks, double sigma) {
  model::RingLevel<double>& across = ranks.network.across;
  across.link = across.link * std::exp(-sigma);
  return ranks;
}

// Standard deviation of the logarithm of its time, by what the device's
// prediction and the ring leave open.
double RanksSigma(const RanksPart& part,
                  double device_sigma,
                  const Cluster& cluster) {
  const double device = (1.0 - part.exposed - part.host) * device_sigma;
  if (!cluster.ranks) {
    return std::hypot(device, part.link, part.log_sigma);
  }
  // What the runs over the ranks scatter by has the device's own error in it.
  const double sigma = std::hypot(std::max(device, cluster.ranks->scatter),
                                  std::max(part.log_sigma, part.link));
  return std::hypot(sigma, OtherRanksSigma(cluster));
}

// How far the step stands from what was measured, given that of one device.
calibrate::Grade RanksGrade(const calibrate::Predictor& predictor,
                            calibrate::Grade one,
                            const model::Workload& workload,
                            const Cluster& cluster) {
  using calibrate::Grade;
  if (one == Grade::kDatasheetOnly) return one;
  if (!cluster.ranks) {
    return predictor.GradeOverRanks(workload, cluster.devices, cluster.hosts);
  }
  if (!cluster.measured()) return Grade::kExtrapolated;
  const std::string words = calibrate::WordsOfRun(workload);
  for (const calibrate::FittedRun& run : cluster.ranks->runs) {
    if (!run.assumed && run.workload == words && run.hosts == cluster.hosts &&
        run.devices.value_or(cluster.measured_ranks) == cluster.devices) {
      return Grade::kMeasured;
    }
  }
  return std::max(one, Grade::kInterpolated);
}

void SetComputing(const hardware::StepTime<double>& computing,
                  StepEstimate& step) {
  step.forward = computing.forward;
  step.backward = computing.backward;
  step.optimizer = computing.optimizer;
  step.other = computing.other;
}

// A step of one that sends nothing: the others compute, too.
hardware::StepTime<double> BesideOthers(const hardware::StepTime<double>& alone,
                                        const Cluster& cluster) {
  return cluster.ranks ? alone * (1.0 / cluster.ranks->share) : alone;
}

using HostPath = std::optional<model::HostPath<double>>;

// What a link, a network and a host that nobody measured leave open.
void AddLinkErrors(const calibrate::StepOfRank& of_rank,
                   const calibrate::RankStepTime& as_is,
                   const calibrate::RankFit& ranks,
                   const HostPath& host,
                   const Cluster& cluster,
                   const calibrate::JoinedNumbers& joined,
                   RanksParts& parts) {
  const auto add = [&](const calibrate::RankFit& slower, const HostPath& path) {
    // What hides at this rate may not at a lower one.
    const calibrate::RankStepTime slow = of_rank.TimeOver(slower, path);
    const auto widen = [](RanksPart& part, double ratio) {
      part.link = std::hypot(part.link, std::log(ratio));
    };
    widen(parts.step, slow.total() / as_is.total());
    if (as_is.backward() > Seconds<>()) {
      widen(parts.backward, slow.backward() / as_is.backward());
    }
  };
  if (!cluster.measured() && cluster.devices > 1) {
    const double of_ring = cluster.ranks
                               ? hardware::FactsOfLinks().ring_share_sigma
                               : joined.ring_share_error;
    add(WithSlowerRing(ranks, of_ring), host);
    if (cluster.network) {
      const double sigma = cluster.network->sigma;
      add(WithSlowerNetwork(ranks,
                            cluster.ranks
                                ? sigma
                                : joined.network_share_error.value_or(sigma)),
          host);
    }
  }
  if (!host) return;
  const hardware::HostFacts& facts = hardware::FactsOfHosts();
  HostPath slower = host;
  slower->link = host->link * std::exp(-facts.copy_share_sigma);
  add(ranks, slower);
  slower = host;
  slower->memory = host->memory * std::exp(-facts.update_sigma);
  add(ranks, slower);
}

// Into `step` its computation beside other ranks, and what they send.
void AddTimes(const calibrate::RankStepTime& over_ranks, StepEstimate& step) {
  // A difference of times as long as a step: where they are equal, nothing is
  // left but what rounding leaves.
  const Seconds<> rounding = over_ranks.total() * 1e-12;
  const auto beyond = [&](Seconds<> difference) {
    return difference > rounding ? difference : Seconds<>();
  };
  SetComputing(over_ranks.computing, step);
  step.other += over_ranks.host;
  step.communication = beyond(over_ranks.exposed);
  step.host_update = over_ranks.host_update;
  step.slowed_computation = beyond(over_ranks.slowed);
  step.waiting = beyond(over_ranks.waiting);
}

// An interval of one device's shape, as wide as the step is unsure over ranks.
void WidenInterval(const calibrate::StepPrediction& prediction,
                   StepEstimate& step) {
  if (prediction.log_sigma > 0 && step.log_sigma > 0) {
    const double ratio = step.log_sigma / prediction.log_sigma;
    step.low_factor = std::pow(prediction.low_factor, ratio);
    step.high_factor = std::pow(prediction.high_factor, ratio);
  } else {
    const double half = calibrate::kNormalQuantile90 * step.log_sigma;
    step.low_factor = std::exp(-half);
    step.high_factor = std::exp(half);
  }
}

// What nobody measured of these ranks, or of ranks that share state.
void AddOpen(const calibrate::Predictor& predictor,
             double share,
             bool shares,
             const Cluster& cluster,
             StepEstimate& step) {
  if (shares || !cluster.ranks) {
    double of_ranks = 0.0;
    if (cluster.devices > 1) {
      of_ranks = cluster.ranks ? kUnmeasuredRanksSigma
                               : predictor.RanksScatter(kUnmeasuredRanksSigma);
    }
    const double open =
        share * std::hypot(of_ranks, shares ? kSharedStateSigma : 0.0);
    step.log_sigma = std::hypot(step.log_sigma, open);
    step.backward_log_sigma = std::hypot(step.backward_log_sigma, open);
  }
  if (!cluster.ranks) {
    const double width = predictor.WidthOverRanks(step.grade);
    step.log_sigma *= width;
    step.backward_log_sigma *= width;
    step.width_95 = predictor.HeavyWidth95();
  }
}

// What a device's prediction says of a step, before others are beside it.
StepEstimate FromPrediction(const calibrate::StepPrediction& prediction) {
  StepEstimate step;
  step.log_sigma = prediction.log_sigma;
  step.forward_log_sigma = prediction.forward_log_sigma;
  step.backward_log_sigma = prediction.backward_log_sigma;
  step.optimizer_log_sigma = prediction.optimizer_log_sigma;
  step.low_factor = prediction.low_factor;
  step.high_factor = prediction.high_factor;
  step.width_95 = prediction.width_95;
  step.figures = prediction.figures;
  step.source_seen = prediction.source_seen;
  step.source_sigma = prediction.source_sigma;
  return step;
}

// What one rank has of a workload, and its prediction alone with its device.
struct PredictedRank {
  const model::Workload* workload = nullptr;
  const calibrate::StepPrediction* prediction = nullptr;
};

// Where several ranks have a model together: of the stages the one that works
// most stands for how sure all are.
PredictedRank BusiestRank(DeviceMemo& memo, const model::Workload& workload) {
  const auto predicted = [&](const model::Workload& of_one) {
    return PredictedRank{&of_one, &memo.Predict(of_one)};
  };
  if (!model::DividesModel(workload.parallel)) return predicted(workload);
  const auto& stages = memo.Stages(workload).distinct();
  PredictedRank busiest = predicted(stages.front().workload);
  for (const auto& stage : stages) {
    const PredictedRank one = predicted(stage.workload);
    if (busiest.prediction->time.total() < one.prediction->time.total()) {
      busiest = one;
    }
  }
  return busiest;
}

// Whether a rank's step is more than what it computes by itself.
bool MeetsOthers(const calibrate::Predictor& predictor,
                 const model::Workload& workload,
                 const Cluster& cluster) {
  return model::DividesModel(workload.parallel) ||
         Sends(predictor, workload, cluster);
}

// The step of a rank that meets others.
calibrate::StepOfRank StepOfRankIn(DeviceMemo& memo,
                                   const model::Workload& workload,
                                   const Cluster& cluster) {
  if (!model::DividesModel(workload.parallel)) {
    return {workload, memo.PredictTime(workload), memo.Messages(workload)};
  }
  const calibrate::ModelStages& stages = memo.Stages(workload);
  std::vector<hardware::StepTime<double>> times;
  times.reserve(stages.distinct().size());
  for (const auto& stage : stages.distinct()) {
    times.push_back(memo.PredictTime(stage.workload));
  }
  return {stages, times, calibrate::PlacementOf(workload.parallel, cluster)};
}

// How sure a step over ranks is, and its grade; its times are known.
void SetDoubt(const calibrate::Predictor& predictor,
              const model::Workload& workload,
              const PredictedRank& rank,
              const Cluster& cluster,
              RanksParts parts,
              StepEstimate& step) {
  const double share = predictor.OpenShare(*rank.workload);
  for (RanksPart* of : {&parts.step, &parts.backward}) {
    of->log_sigma *= share;
    of->link *= share;
  }
  const calibrate::StepPrediction& alone = *rank.prediction;
  step.log_sigma = RanksSigma(parts.step, alone.log_sigma, cluster);
  step.backward_log_sigma =
      RanksSigma(parts.backward, alone.backward_log_sigma, cluster);
  step.grade =
      RanksGrade(predictor,
                 predictor.GradeOver(*rank.workload, cluster.devices_per_chip),
                 workload,
                 cluster);
  const bool shares =
      DividesStep(workload.parallel) || model::DividesModel(workload.parallel);
  AddOpen(predictor, share, shares, cluster, step);
  WidenInterval(alone, step);
}

// Into `step`, which says how sure `rank` is alone, what it is over the ranks of
// the cluster.
void AddRanks(DeviceMemo& memo,
              const model::Workload& workload,
              const PredictedRank& rank,
              const Cluster& cluster,
              StepEstimate& step) {
  const calibrate::Predictor& predictor = memo.predictor();
  const calibrate::StepOfRank of_rank = StepOfRankIn(memo, workload, cluster);
  const calibrate::RankFit ranks = GroupOf(predictor, cluster);
  const HostPath host =
      calibrate::HostPathOf(workload.parallel, cluster, predictor.device());
  const calibrate::RankStepTime over_ranks = of_rank.Over(ranks, host);
  AddTimes(over_ranks, step);
  step.ring_ranks = cluster.measured_ranks;
  if (cluster.devices > 1 && cluster.racks == 1) {
    step.ring = ranks.network.alone.ring;
  }
  step.traffic = over_ranks.traffic;
  RanksParts parts = PartsOf(over_ranks);
  AddLinkErrors(
      of_rank, over_ranks, ranks, host, cluster, predictor.joined(), parts);
  SetDoubt(predictor, workload, rank, cluster, parts, step);
}

}  // namespace

StepEstimate EstimateStep(DeviceMemo& memo,
                          const model::Workload& workload,
                          const Cluster& cluster) {
  const calibrate::Predictor& predictor = memo.predictor();
  const PredictedRank rank = BusiestRank(memo, workload);
  StepEstimate step = FromPrediction(*rank.prediction);
  if (MeetsOthers(predictor, workload, cluster)) {
    AddRanks(memo, workload, rank, cluster, step);
    return step;
  }
  SetComputing(BesideOthers(rank.prediction->time, cluster), step);
  step.grade =
      cluster.ranks
          ? RanksGrade(predictor, rank.prediction->grade, workload, cluster)
          : predictor.GradeOver(workload, cluster.devices);
  return step;
}

StepEstimate EstimateStepTimes(DeviceMemo& memo,
                               const model::Workload& workload,
                               const Cluster& cluster) {
  const calibrate::Predictor& predictor = memo.predictor();
  StepEstimate step;
  if (MeetsOthers(predictor, workload, cluster)) {
    const HostPath host =
        calibrate::HostPathOf(workload.parallel, cluster, predictor.device());
    const calibrate::StepOfRank of_rank = StepOfRankIn(memo, workload, cluster);
    AddTimes(of_rank.TimeOver(GroupOf(predictor, cluster), host), step);
  } else {
    SetComputing(BesideOthers(memo.PredictTime(workload), cluster), step);
  }
  return step;
}

StepEstimate EstimateStep(const calibrate::Predictor& predictor,
                          const model::Workload& workload,
                          const Cluster& cluster,
                          std::string_view source) {
  DeviceMemo memo(predictor, source);
  return EstimateStep(
      memo, calibrate::OnDevices(workload, cluster.devices), cluster);
}

}  // namespace trainfare::scenarios
