#include "calibrate/fit/rank_step.h"

#include <ceres/jet.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/gradient_compression.h"
#include "model/overlap.h"
#include "model/sharded_pass.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::calibrate {
namespace {

using model::Seconds;

// Buckets of these sizes, from the last tensor on.
std::vector<model::GradientBucket> BucketsOfSizes(
    const std::vector<model::ParameterTensor>& tensors,
    int64_t width,
    const std::vector<model::Bytes<>>& sizes) {
  std::vector<model::GradientBucket> buckets;
  size_t next = tensors.size();
  for (const model::Bytes<> size : sizes) {
    model::GradientBucket bucket;
    const bool last = buckets.size() + 1 == sizes.size();
    while (next > 0 && (last || model::Byte(static_cast<double>(
                                    bucket.elements * width)) < size)) {
      const model::ParameterTensor& tensor = tensors[--next];
      bucket.elements += tensor.elements;
      ++bucket.tensors;
      bucket.ready_after_layer = tensor.layer;
    }
    if (bucket.tensors > 0) buckets.push_back(bucket);
  }
  return buckets;
}

// Numbers that a group of ranks leaves open: latency and time a byte of the
// ring alone, the same beside computation, speed, logs of share and host.
constexpr int kUnknowns = 7;
using Jet = ceres::Jet<double, kUnknowns>;

model::RingLevel<Jet> RingOf(const RingFit& fit, int first) {
  const Jet latency(fit.ring.step_latency.base(), first);
  const Jet inverse(1.0 / fit.ring.link.base(), first + 1);
  return {Seconds<Jet>(latency), model::BytesPerSecond<Jet>(1.0 / inverse)};
}

// g^T C g of one ring's two numbers.
double RingVariance(const RingFit& fit, double by_latency, double by_inverse) {
  const double latency = by_latency * fit.latency_error.base();
  const double inverse = by_inverse * fit.link_error / fit.ring.link.base();
  return latency * latency + inverse * inverse +
         2.0 * fit.correlation * latency * inverse;
}

// Standard deviation of log(time), of which messages nothing hides are
// `exposed`, by what the group leaves open, and how the other collectives
// scatter about their factors.
double LogSigma(const Jet& time,
                Seconds<> exposed,
                double collectives_error,
                const RankFit& ranks) {
  const RankNetwork& fitted = ranks.network;
  const auto by = [&](int unknown) { return time.v[unknown] / time.a; };
  const double speed = by(4) * fitted.speed_error;
  const double share = by(5) * ranks.share_error;
  const double host = by(6) * ranks.host_error;
  // What the ring's formula leaves of single messages.
  const double messages = std::hypot(fitted.alone.scatter, collectives_error) *
                          (exposed / Seconds<>(time.a));
  // One rank alone has no ring.
  const bool rings = fitted.ranks > 1;
  const double variance =
      (rings ? RingVariance(fitted.alone, by(0), by(1)) : 0.0) +
      (rings && fitted.beside_timed ? RingVariance(fitted.beside, by(2), by(3))
                                    : 0.0) +
      speed * speed + share * share + host * host +
      2.0 * ranks.host_share_correlation * share * host + messages * messages;
  return std::sqrt(std::max(variance, 0.0));
}

// What sending adds to a step of ranks that compute beside each other.
struct Added {
  Seconds<Jet> slowed;
  Seconds<Jet> exposed;
  Seconds<Jet> all;
  std::vector<ShardTraffic> traffic;
};

Added AddedByBuckets(
    const std::vector<model::BackwardPiece<double>>& of_one_alone,
    const model::RankNetwork<Jet>& network,
    int64_t ranks,
    const Jet& slower) {
  std::vector<model::BackwardPiece<Jet>> pieces;
  pieces.reserve(of_one_alone.size());
  Seconds<Jet> computed;
  for (const model::BackwardPiece<double>& piece : of_one_alone) {
    pieces.push_back({piece.compute * slower, piece.sent, piece.transfers});
    computed += pieces.back().compute;
  }
  const model::OverlapTime<Jet> end =
      model::BackwardOverRanks(pieces, ranks, network);
  return {end.compute_end - computed, end.exposed(), end.end - computed, {}};
}

// Passes of ranks that share state, unit by unit.
class SharedPasses {
 public:
  SharedPasses(const model::Workload& workload,
               const model::ShardUnits& units,
               const model::RankNetwork<Jet>& network,
               int64_t ranks,
               const std::optional<model::HostPath<double>>& host,
               const Jet& slower)
      : w_(workload),
        network_(network),
        slower_(slower),
        groups_{model::ShardsOf(workload.parallel),
                workload.parallel.replicate,
                ranks / network.hosts},
        host_(host),
        units_(units) {}

  Added Over(const hardware::StepTime<double>& alone) {
    Added added;
    const auto passes = static_cast<double>(w_.accumulation);
    if (model::ShardsParameters(w_.parallel) ||
        w_.parallel.offload_activations) {
      Add("forward", Forward(alone), passes, added);
    }
    if (w_.work == model::Work::kForward) return added;
    // Whole gradients wait for the last micro-batch.
    const double sums = model::ShardsGradients(w_.parallel) ? passes : 1.0;
    Add("backward", Backward(alone), sums, added);
    const bool shared =
        groups_.shards > 1 && !model::ShardsParameters(w_.parallel);
    if (shared || model::UpdatedFromHost(w_) > 0) {
      Add("update", {Updated()}, 1.0, added);
    }
    return added;
  }

 private:
  using Tasks = std::vector<model::ShardTask<Jet>>;

  using Transfer = model::TransferTime<Jet>;

  Transfer Gather(const model::ShardUnit& unit) {
    if (groups_.shards == 1) return {};
    const model::Bytes<> size =
        model::Byte(static_cast<double>(model::GatheredBytes(w_, unit)));
    sent_ += model::GatherTraffic(groups_, size);
    return TimeOf([&](const model::RingLevel<Jet>& ring) {
      return network_.gather *
             model::GatherTime(groups_, size, ring, network_.across);
    });
  }

  Transfer Reduce(int64_t bytes) {
    if (bytes == 0 || groups_.shards * groups_.copies == 1) return {};
    const model::Bytes<> size = model::Byte(static_cast<double>(bytes));
    sent_ += model::ReduceTraffic(groups_, size);
    return TimeOf([&](const model::RingLevel<Jet>& ring) {
      return model::ReduceTime(
          groups_, size, ring, network_.across, network_.reduce_scatter);
    });
  }

  // `transfer` with a copy to or from the host.
  Transfer WithCopy(Transfer transfer, int64_t bytes) {
    if (bytes == 0) return transfer;
    ENSURE(host_.has_value(), "what is offloaded has a way to the host");
    const model::Bytes<> size = model::Byte(static_cast<double>(bytes));
    copied_ += size;
    const Seconds<Jet> time(Jet((size / host_->link).base()));
    return {transfer.alone + time, transfer.beside + time};
  }

  // Parameters where they are used: from the host, and from other ranks.
  Transfer Bring(const model::ShardUnit& unit) {
    if (!model::ShardsParameters(w_.parallel)) return {};
    return WithCopy(Gather(unit), model::ParametersFromHost(w_, unit));
  }

  // What a block keeps for its backward pass, to or from the host.
  Transfer CopyKept(Transfer transfer, size_t block) {
    if (!w_.parallel.offload_activations || w_.work == model::Work::kForward) {
      return transfer;
    }
    return WithCopy(transfer,
                    model::KeptByBlock(w_, static_cast<int64_t>(block)));
  }

  // What each rank, or its host, updated goes to the others, and to the device,
  // before the next step.
  model::ShardTask<Jet> Updated() {
    model::ShardUnit trained;
    trained.elements = model::TrainableParameters(w_);
    model::ShardTask<Jet> update;
    if (!model::ShardsParameters(w_.parallel)) update.gather = Gather(trained);
    update.gather = WithCopy(update.gather, model::UpdatedFromHost(w_));
    return update;
  }

  template <class Of>
  model::TransferTime<Jet> TimeOf(const Of& of) const {
    const Seconds<Jet> alone = of(network_.alone);
    return {alone, std::max(of(network_.beside), alone)};
  }

  // Time of block number i of a pass.
  Seconds<> BlockOf(const hardware::PassUnits<double>& units, size_t i) const {
    return static_cast<int64_t>(i) < w_.architecture.layers
               ? units.layer
               : units.decoder_layer;
  }

  // Factor that makes the units' times those of one pass: blocks of several
  // kinds are recorded as one.
  Jet ScaleTo(const hardware::PassUnits<double>& units,
              Seconds<> all,
              size_t first) const {
    Seconds<> sum = units.embeddings + units.head;
    for (size_t i = first; i < units_.blocks.size(); ++i) {
      sum += BlockOf(units, i);
    }
    const double once = all / static_cast<double>(w_.accumulation) / sum;
    return sum.base() > 0 ? slower_ * once : slower_;
  }

  Tasks Forward(const hardware::StepTime<double>& alone) {
    const hardware::PassUnits<double>& units = alone.forward_units;
    const Jet scale = ScaleTo(units, alone.forward.total(), 0);
    Tasks tasks;
    tasks.push_back({Bring(units_.root), units.embeddings * scale, {}});
    for (size_t i = 0; i < units_.blocks.size(); ++i) {
      tasks.push_back({Bring(units_.blocks[i]),
                       BlockOf(units, i) * scale,
                       CopyKept({}, i)});
    }
    tasks.push_back({{}, units.head * scale, {}});
    return tasks;
  }

  Tasks Backward(const hardware::StepTime<double>& alone) {
    const hardware::PassUnits<double>& units = alone.backward_units;
    const auto frozen = static_cast<size_t>(w_.trainable.frozen_layers);
    const Jet scale = ScaleTo(units, alone.backward.total(), frozen);
    const bool gathers = w_.parallel.reshard_after_forward;
    Tasks tasks;
    tasks.push_back({{}, units.head * scale, {}});
    int64_t ready = 0;  // bytes of gradients that wait for a full bucket
    const auto reduce = [&](const model::ShardUnit& unit, bool last) {
      ready += model::SummedBytes(w_, unit);
      if (!last && !model::ShardsParameters(w_.parallel) &&
          ready < model::kReduceBucket * model::GradientWidth(w_)) {
        return Transfer();
      }
      const int64_t bytes = std::exchange(ready, 0);
      return WithCopy(
          Reduce(bytes),
          model::GradientsToHost(w_, bytes / model::GradientWidth(w_)));
    };
    for (size_t i = units_.blocks.size(); i > frozen; --i) {
      const model::ShardUnit& unit = units_.blocks[i - 1];
      tasks.push_back({CopyKept(gathers ? Bring(unit) : Transfer(), i - 1),
                       BlockOf(units, i - 1) * scale,
                       reduce(unit, false)});
    }
    tasks.push_back({{}, units.embeddings * scale, reduce(units_.root, true)});
    return tasks;
  }

  void Add(std::string_view part,
           const Tasks& tasks,
           double times,
           Added& added) {
    const model::ShardedPassTime<Jet> pass =
        model::OverlapGathered(tasks, network_.speed);
    added.slowed += pass.slowed * times;
    added.exposed += pass.waiting * times;
    added.all += (pass.slowed + pass.waiting) * times;
    added.traffic.push_back({part,
                             std::exchange(sent_, {}) * times,
                             std::exchange(copied_, {}) * times,
                             Seconds<>(pass.sending.base().a * times),
                             Seconds<>(pass.waiting.base().a * times),
                             Seconds<>(pass.slowed.base().a * times)});
  }

  const model::Workload& w_;
  const model::RankNetwork<Jet>& network_;
  Jet slower_;
  model::ShardGroups groups_;
  const std::optional<model::HostPath<double>>& host_;
  const model::ShardUnits& units_;
  // By what was asked for since the last part.
  model::Bytes<> sent_;
  model::Bytes<> copied_;
};

}  // namespace

std::vector<model::BackwardPiece<double>> BackwardPieces(
    const model::Workload& workload,
    const hardware::StepTime<double>& time,
    const std::vector<model::Bytes<>>& bucket_sizes) {
  const model::Architecture& a = workload.architecture;
  const int64_t width = model::GradientWidth(workload);
  const int64_t blocks = a.blocks();
  const std::vector<model::ParameterTensor> tensors =
      model::TrainableTensorsOf(workload);
  std::vector<model::BackwardPiece<double>> by_layer(
      static_cast<size_t>(blocks + 2));
  // Buckets fill from the last tensor on.
  size_t end = tensors.size();
  for (const model::GradientBucket& bucket :
       bucket_sizes.empty() ? model::BucketGradients(tensors, width)
                            : BucketsOfSizes(tensors, width, bucket_sizes)) {
    const auto layer = static_cast<size_t>(
        std::clamp<int64_t>(bucket.ready_after_layer, 0, blocks + 1));
    const size_t begin = end - static_cast<size_t>(bucket.tensors);
    const model::SentGradients message =
        model::SentOf(workload.compression,
                      std::span(tensors).subspan(begin, end - begin),
                      width);
    end = begin;
    by_layer[layer].sent += model::Byte(static_cast<double>(message.bytes));
    by_layer[layer].transfers += message.transfers;
  }
  std::vector<model::BackwardPiece<double>> pieces;
  for (int64_t layer = blocks + 1; layer >= 0; --layer) {
    model::BackwardPiece<double> piece = by_layer[static_cast<size_t>(layer)];
    piece.compute = time.backward_units.embeddings;
    if (layer == blocks + 1) {
      piece.compute = time.backward_units.head;
    } else if (layer > a.layers) {
      piece.compute = time.backward_units.decoder_layer;
    } else if (layer > 0) {
      // Frozen blocks have no backward pass.
      piece.compute = layer > workload.trainable.frozen_layers
                          ? time.backward_units.layer
                          : Seconds<>();
    }
    pieces.push_back(piece);
  }
  return pieces;
}

StepOfRank::StepOfRank(const model::Workload& workload,
                       const hardware::StepTime<double>& alone,
                       const std::vector<model::Bytes<>>& bucket_sizes)
    : workload_(workload),
      alone_(alone),
      by_unit_(model::ShardsOf(workload.parallel) > 1 ||
               model::Offloads(workload.parallel)) {
  if (by_unit_) {
    units_ = model::ShardUnitsOf(workload);
  } else {
    pieces_ = BackwardPieces(workload, alone, bucket_sizes);
  }
}

RankStepTime StepOfRank::Over(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  RankStepTime step;
  step.computing = alone_ * (1.0 / ranks.share);
  const RankNetwork& fitted = ranks.network;
  const Jet log_share(std::log(ranks.share), 5);
  const Jet slower = exp(-log_share);
  model::RankNetwork<Jet> network;
  network.alone = RingOf(fitted.alone, 0);
  network.beside =
      fitted.beside_timed ? RingOf(fitted.beside, 2) : network.alone;
  network.speed = Jet(fitted.speed, 4);
  network.hosts = fitted.hosts;
  const CollectiveFactor gather = fitted.GatherFactor();
  const CollectiveFactor sum = fitted.SumFactor();
  const double collectives_error =
      by_unit_ ? std::max(gather.error, sum.error) : 0.0;
  network.gather = gather.factor;
  network.reduce_scatter = sum.factor;
  network.across = {Seconds<Jet>(Jet(fitted.across.step_latency.base())),
                    model::BytesPerSecond<Jet>(Jet(fitted.across.link.base()))};
  Added added =
      by_unit_
          ? SharedPasses(workload_, units_, network, fitted.ranks, host, slower)
                .Over(alone_)
          : AddedByBuckets(pieces_, network, fitted.ranks, slower);
  step.slowed = Seconds<>(std::max(0.0, added.slowed.base().a));
  step.exposed = Seconds<>(added.exposed.base().a);
  step.traffic = std::move(added.traffic);
  if (!model::RulesOf(workload_).one_graph) step.host = ranks.host;
  if (host) step.host_update = model::HostUpdateTime(workload_, *host);
  Jet rank_host(step.host.base());
  rank_host.v[6] = step.host.base();  // by its logarithm
  const Jet sending = added.all.base();
  // All else that is not of a pass that sends moves with the share alone.
  step.log_sigma = LogSigma(alone_.total().base() * slower + sending +
                                rank_host + step.host_update.base(),
                            step.exposed,
                            collectives_error,
                            ranks);
  step.backward_log_sigma =
      LogSigma(alone_.backward.total().base() * slower + sending,
               step.exposed,
               collectives_error,
               ranks);
  return step;
}

const RankFit* NearestRanks(const Fit& fit, int64_t ranks) {
  if (ranks < 2) return nullptr;
  const RankFit* nearest = nullptr;
  double least = 0;
  for (const RankFit& group : fit.ranks) {
    const double apart = std::abs(std::log(
        static_cast<double>(group.network.ranks) / static_cast<double>(ranks)));
    if (nearest == nullptr || apart < least) {
      nearest = &group;
      least = apart;
    }
  }
  return nearest;
}

std::optional<RankFit> RanksOf(const Fit& fit, int64_t ranks) {
  const RankFit* nearest = NearestRanks(fit, ranks);
  if (nearest == nullptr) return std::nullopt;
  RankFit group = *nearest;
  if (group.network.ranks == ranks) return group;
  if (group.ranks_per_device > 1) {
    group.share *=
        static_cast<double>(group.network.ranks) / static_cast<double>(ranks);
    group.ranks_per_device = ranks;
  }
  group.network.ranks = ranks;
  const double open = hardware::FactsOfLinks().ring_share_sigma;
  for (RingFit* ring : {&group.network.alone, &group.network.beside}) {
    ring->link_error = std::hypot(ring->link_error, open);
  }
  return group;
}

}  // namespace trainfare::calibrate
