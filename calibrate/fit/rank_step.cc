#include "calibrate/fit/rank_step.h"

#include <ceres/jet.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/gradient_compression.h"
#include "model/overlap.h"
#include "model/trainable.h"

namespace trainfare::calibrate {
namespace {

using model::Seconds;

int64_t GradientWidth(const model::Workload& workload) {
  // Autocast and compiled stacks keep gradients in fp32.
  return model::NarrowWeights(workload)
             ? model::BytesPerElement(workload.precision)
             : 4;
}

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
// `exposed`, by what the group leaves open.
double LogSigma(const Jet& time, Seconds<> exposed, const RankFit& ranks) {
  const RankNetwork& fitted = ranks.network;
  const auto by = [&](int unknown) { return time.v[unknown] / time.a; };
  const double speed = by(4) * fitted.speed_error;
  const double share = by(5) * ranks.share_error;
  const double host = by(6) * ranks.host_error;
  // What the ring's formula leaves of single messages.
  const double messages = fitted.alone.scatter * (exposed / Seconds<>(time.a));
  const double variance =
      RingVariance(fitted.alone, by(0), by(1)) +
      (fitted.beside_timed ? RingVariance(fitted.beside, by(2), by(3)) : 0.0) +
      speed * speed + share * share + host * host +
      2.0 * ranks.host_share_correlation * share * host + messages * messages;
  return std::sqrt(std::max(variance, 0.0));
}

}  // namespace

std::vector<model::BackwardPiece<double>> BackwardPieces(
    const model::Workload& workload,
    const hardware::StepTime<double>& time,
    const std::vector<model::Bytes<>>& bucket_sizes) {
  const model::Architecture& a = workload.architecture;
  const int64_t width = GradientWidth(workload);
  const int64_t blocks = a.layers + a.decoder_layers;
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
    piece.compute = time.backward_embeddings;
    if (layer == blocks + 1) {
      piece.compute = time.backward_head;
    } else if (layer > a.layers) {
      piece.compute = time.backward_decoder_layer;
    } else if (layer > 0) {
      // Frozen blocks have no backward pass.
      piece.compute = layer > workload.trainable.frozen_layers
                          ? time.backward_layer
                          : Seconds<>();
    }
    pieces.push_back(piece);
  }
  return pieces;
}

RankStepTime StepOverRanks(const model::Workload& workload,
                           const hardware::StepTime<double>& alone,
                           const RankFit& ranks,
                           const std::vector<model::Bytes<>>& bucket_sizes) {
  RankStepTime step;
  step.computing = alone * (1.0 / ranks.share);
  const RankNetwork& fitted = ranks.network;
  const Jet log_share(std::log(ranks.share), 5);
  const Jet slower = exp(-log_share);
  std::vector<model::BackwardPiece<Jet>> pieces;
  Seconds<Jet> computed;
  for (const model::BackwardPiece<double>& piece :
       BackwardPieces(workload, alone, bucket_sizes)) {
    pieces.push_back({piece.compute * slower, piece.sent, piece.transfers});
    computed += pieces.back().compute;
  }
  model::RankNetwork<Jet> network;
  network.alone = RingOf(fitted.alone, 0);
  network.beside =
      fitted.beside_timed ? RingOf(fitted.beside, 2) : network.alone;
  network.speed = Jet(fitted.speed, 4);
  const model::OverlapTime<Jet> end =
      model::BackwardOverRanks(pieces, fitted.ranks, network);
  step.slowed = Seconds<>(std::max(0.0, (end.compute_end - computed).base().a));
  step.exposed = Seconds<>(end.exposed().base().a);
  step.host = ranks.host;
  Jet host(ranks.host.base());
  host.v[6] = ranks.host.base();  // by its logarithm
  const Jet sending = (end.end - computed).base();
  // All else that is not of the last backward pass moves with the share alone.
  step.log_sigma = LogSigma(
      alone.total().base() * slower + sending + host, step.exposed, ranks);
  step.backward_log_sigma = LogSigma(
      alone.backward.total().base() * slower + sending, step.exposed, ranks);
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
