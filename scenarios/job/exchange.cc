#include "scenarios/job/exchange.h"

#include <cmath>
#include <functional>
#include <utility>

#include "calibrate/fit/stage_passes.h"
#include "calibrate/fit/step_model.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/parallel.h"
#include "model/sharded_pass.h"
#include "model/sharding.h"
#include "model/split.h"

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

using Network = model::RankNetwork<double>;

// A collective over so many ranks: of each size what it takes, and what of it a
// link of one rank carries.
struct GroupCollective {
  StepCollective collective = StepCollective::kAllReduce;
  int64_t ranks = 1;
  std::function<model::Seconds<>(model::Bytes<>)> time;
  std::function<model::Bytes<>(model::Bytes<>)> carried;
};
using GroupCollectives = std::vector<GroupCollective>;

GroupCollective SumOfCopies(const model::ShardGroups& groups,
                            const Network& network) {
  const int64_t ranks = groups.copies;
  return {StepCollective::kAllReduce,
          ranks,
          [=](model::Bytes<> size) {
            return model::AllReduceTime(groups.copies_in_host(),
                                        groups.hosts_of_shard(),
                                        size,
                                        network.alone,
                                        network.across);
          },
          [=](model::Bytes<> size) {
            return model::BusBytes(Collective::kAllReduce, ranks, size);
          }};
}

// Gathers of what ranks share, and sums that scatter it.
GroupCollectives OfShards(const model::ShardGroups& groups,
                          const Network& network) {
  const auto over = [&](StepCollective collective, double factor) {
    const int64_t ranks = groups.shards;
    return GroupCollective{
        collective,
        ranks,
        [=](model::Bytes<> size) {
          return factor *
                 model::GatherTime(groups, size, network.alone, network.across);
        },
        [=](model::Bytes<> size) {
          return model::BusBytes(Collective::kAllGather, ranks, size);
        }};
  };
  return {over(StepCollective::kAllGather, network.gather),
          over(StepCollective::kReduceScatter, network.reduce_scatter)};
}

// Ranks that divide tokens between products gather and scatter what the others
// sum.
GroupCollectives WithinLayers(const model::Parallel& parallel,
                              const model::GroupShape& shape,
                              const Network& network) {
  const int64_t ranks = parallel.tensor;
  if (parallel.sequence) return OfShards({ranks, 1, shape.in_host}, network);
  return {SumOfCopies({1, ranks, shape.in_host}, network)};
}

GroupCollectives BetweenCopies(const model::Parallel& parallel,
                               const model::GroupShape& shape,
                               const Network& network) {
  model::ShardGroups groups;
  groups.shards = model::ShardsOf(parallel);
  groups.copies = model::RanksThatSum(parallel) / groups.shards;
  groups.local = shape.in_host;
  GroupCollectives all = OfShards(groups, network);
  all.push_back(SumOfCopies(groups, network));
  return all;
}

// Keys and values of a rank, which each passes on to the next: of n - 1 messages
// all go over its link.
GroupCollective RoundSequence(const model::GroupShape& shape,
                              const Network& network) {
  return {
      StepCollective::kRingPass,
      shape.ranks(),
      [=](model::Bytes<> size) {
        return model::RoundTime(
            shape.in_host, shape.hosts, size, network.alone, network.across);
      },
      [=](model::Bytes<> size) {
        return size * static_cast<double>(shape.ranks() - 1);
      }};
}

// Tokens that go to experts of other ranks. nccl-tests count all with all as a
// gather.
GroupCollective ToExperts(const model::Workload& workload,
                          const model::GroupShape& shape,
                          const Network& network) {
  const model::ExpertMessages expert =
      model::ExpertMessagesOf(workload, model::OfStage(workload, 0));
  const auto time = [=](model::Bytes<> size) {
    model::ExpertMessages of_size = expert;
    of_size.rows = of_size.once = size;
    return calibrate::ExchangeTime(of_size, shape, network);
  };
  const int64_t ranks = shape.ranks();
  if (expert.exchange == model::ExpertExchange::kAllToAll) {
    return {StepCollective::kAllToAll, ranks, time, [=](model::Bytes<> size) {
              return model::BusBytes(Collective::kAllGather, ranks, size);
            }};
  }
  const int64_t places = shape.hosts > 1 ? shape.hosts : ranks;
  const double leaving =
      model::RowsLeaving(places, model::PlacesOfToken(expert.routing, places));
  return {StepCollective::kRowsByHost, ranks, time, [=](model::Bytes<> size) {
            return size * leaving;
          }};
}

// Those of a workload whose data is known, over more than one rank each.
GroupCollectives AllCollectives(const model::Workload& workload,
                                const calibrate::RankPlacement& placement,
                                const Network& network) {
  const model::Parallel& parallel = workload.parallel;
  GroupCollectives all = WithinLayers(parallel, placement.OfTensor(), network);
  for (auto& one : BetweenCopies(parallel, placement.OfData(), network)) {
    all.push_back(std::move(one));
  }
  all.push_back(RoundSequence(placement.OfContext(), network));
  if (parallel.expert > 1) {
    all.push_back(ToExperts(workload, placement.OfExpert(), network));
  }
  std::erase_if(all, [](const auto& one) { return one.ranks == 1; });
  return all;
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
  const Network network = GroupOf(predictor, cluster).network.Formula();
  std::vector<CollectiveTime> times;
  for (const GroupCollective& one :
       AllCollectives(workload,
                      calibrate::PlacementOf(workload.parallel, cluster),
                      network)) {
    for (const double mebibytes : {0.25, 4.0, 64.0, 1024.0}) {
      const model::Bytes<> size = model::MiB(mebibytes);
      const model::Seconds<> time = one.time(size);
      times.push_back(
          {one.collective, one.ranks, size, time, one.carried(size) / time});
    }
  }
  return times;
}

}  // namespace trainfare::scenarios
