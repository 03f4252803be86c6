#include "scenarios/job/exchange.h"

#include <cmath>
#include <stdexcept>

#include "calibrate/fit/step_model.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/parallel.h"
#include "model/sharded_pass.h"
#include "model/sharding.h"

namespace trainfare::scenarios {
namespace {

using model::Collective;

// What a factor of two between the ranks measured and asked for may move a
// step by, as the standard deviation of its logarithm: the slowest of more
// ranks is slower, and a switch may carry less than its links. An assumption.
constexpr double kOtherRanksSigma = 0.1;

// Those that sum gradients, where nothing else is sent between them.
std::optional<calibrate::RankFit> GroupThatSums(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const Cluster& cluster) {
  if (!Sends(predictor, workload, cluster) || DividesStep(workload.parallel) ||
      model::DividesModel(workload.parallel)) {
    return std::nullopt;
  }
  return GroupOf(predictor, cluster);
}

model::Seconds<> TimeOf(Collective collective,
                        const model::ShardGroups& groups,
                        model::Bytes<> size,
                        const model::RankNetwork<double>& network) {
  const model::RingLevel<double>& ring = network.alone;
  switch (collective) {
    case Collective::kAllGather:
      return network.gather *
             model::GatherTime(groups, size, ring, network.across);
    case Collective::kReduceScatter:
      return network.reduce_scatter *
             model::GatherTime(groups, size, ring, network.across);
    case Collective::kAllReduce:
      return model::AllReduceTime(groups.copies_in_host(),
                                  groups.hosts_of_shard(),
                                  size,
                                  ring,
                                  network.across);
  }
  throw std::logic_error("a collective without a time");
}

// A collective over so many ranks, and how these lie.
struct GroupCollective {
  Collective collective = Collective::kAllReduce;
  int64_t ranks = 1;
  model::ShardGroups groups;
};

// Ranks that divide tokens between products gather and scatter what the others
// sum.
std::vector<GroupCollective> CollectivesWithinLayers(
    const model::Parallel& parallel, int64_t ranks_in_host) {
  const int64_t ranks = parallel.tensor;
  if (!parallel.sequence) {
    return {{Collective::kAllReduce, ranks, {1, ranks, ranks_in_host}}};
  }
  const model::ShardGroups shares{ranks, 1, ranks_in_host};
  return {{Collective::kAllGather, ranks, shares},
          {Collective::kReduceScatter, ranks, shares}};
}

std::vector<GroupCollective> CollectivesOfCopies(
    const model::Parallel& parallel,
    const calibrate::RankPlacement& placement) {
  model::ShardGroups groups;
  groups.shards = model::ShardsOf(parallel);
  groups.copies = model::RanksThatSum(parallel) / groups.shards;
  groups.local = placement.OfData().in_host;
  return {{Collective::kAllGather, groups.shards, groups},
          {Collective::kReduceScatter, groups.shards, groups},
          {Collective::kAllReduce, groups.copies, groups}};
}

}  // namespace

bool DividesStep(const model::Parallel& parallel) {
  return model::ShardsOf(parallel) > 1 || model::Offloads(parallel);
}

bool Sends(const calibrate::Predictor& predictor,
           const model::Workload& workload,
           const Cluster& cluster) {
  if (!calibrate::SendsBetween(cluster, workload)) return false;
  return DividesStep(workload.parallel) || cluster.racks > 1 ||
         !predictor.HasExchangeOf(cluster.devices);
}

calibrate::RankFit GroupOf(const calibrate::Predictor& predictor,
                           const Cluster& cluster) {
  if (cluster.ranks) return *cluster.ranks;
  return calibrate::DatasheetRanks(cluster, predictor.joined());
}

double OtherRanksSigma(const Cluster& cluster) {
  if (cluster.measured()) return 0.0;
  const double doublings =
      std::abs(std::log2(static_cast<double>(cluster.devices) /
                         static_cast<double>(cluster.measured_ranks)));
  return doublings * kOtherRanksSigma;
}

std::optional<GradientExchange> GradientExchangeOf(
    const calibrate::Predictor& predictor,
    const model::Workload& asked,
    const Cluster& cluster) {
  model::Workload workload = asked;
  workload.parallel = model::OverDevices(asked.parallel, cluster.devices);
  const auto ranks = GroupThatSums(predictor, workload, cluster);
  if (!ranks) return std::nullopt;
  const calibrate::RankNetwork& network = ranks->network;
  GradientExchange exchange;
  for (const model::BackwardPiece<double>& piece :
       calibrate::RankMessages(workload).Pieces(
           predictor.Predict(workload).time.backward_units)) {
    exchange.sent += piece.sent;
    exchange.sending += model::SendingTime(network.ranks,
                                           piece,
                                           network.alone.ring,
                                           network.hosts,
                                           network.across);
  }
  return exchange;
}

calibrate::MessageTime AllReduceTimeOf(const calibrate::Predictor& predictor,
                                       const model::Workload& asked,
                                       const Cluster& cluster,
                                       model::Bytes<> size) {
  const model::Workload workload = calibrate::OnDevices(asked, cluster.devices);
  const auto ranks = GroupThatSums(predictor, workload, cluster);
  if (!ranks) {
    throw model::InputError("no all-reduce sums gradients of its devices");
  }
  calibrate::MessageTime message = calibrate::AllReduceOver(*ranks, size);
  const double open =
      cluster.ranks ? OtherRanksSigma(cluster)
                    : std::hypot(predictor.joined().ring_share_error,
                                 predictor.RanksScatter(kUnmeasuredRanksSigma));
  message.log_sigma = std::hypot(message.log_sigma, open);
  return message;
}

std::vector<CollectiveTime> CollectiveTimesOf(
    const calibrate::Predictor& predictor,
    const model::Workload& asked,
    const Cluster& cluster) {
  const model::Workload workload = calibrate::OnDevices(asked, cluster.devices);
  if (cluster.devices == 1 || !Sends(predictor, workload, cluster)) return {};
  const calibrate::RankPlacement placement =
      calibrate::PlacementOf(workload.parallel, cluster);
  std::vector<GroupCollective> sent =
      CollectivesWithinLayers(workload.parallel, placement.OfTensor().in_host);
  const std::vector<GroupCollective> of_copies =
      CollectivesOfCopies(workload.parallel, placement);
  sent.insert(sent.end(), of_copies.begin(), of_copies.end());
  const model::RankNetwork<double> network =
      GroupOf(predictor, cluster).network.Formula();
  std::vector<CollectiveTime> times;
  for (const GroupCollective& one : sent) {
    if (one.ranks == 1) continue;
    for (const double mebibytes : {0.25, 4.0, 64.0, 1024.0}) {
      const model::Bytes<> size = model::MiB(mebibytes);
      const model::Seconds<> time =
          TimeOf(one.collective, one.groups, size, network);
      times.push_back(
          {one.collective,
           one.ranks,
           size,
           time,
           model::BusBytes(one.collective, one.ranks, size) / time});
    }
  }
  return times;
}

}  // namespace trainfare::scenarios
