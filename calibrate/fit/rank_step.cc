#include "calibrate/fit/rank_step.h"

#include <ceres/jet.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "hardware/catalog/kind_facts.h"
#include "model/stack_rules.h"

namespace trainfare::calibrate {
namespace {

using model::Seconds;

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

}  // namespace

StepOfRank::StepOfRank(const model::Workload& workload,
                       const hardware::StepTime<double>& alone,
                       const std::vector<model::Bytes<>>& bucket_sizes)
    : messages_(workload, bucket_sizes), alone_(alone) {}

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
      messages_.by_unit() ? std::max(gather.error, sum.error) : 0.0;
  network.gather = gather.factor;
  network.reduce_scatter = sum.factor;
  network.across = {Seconds<Jet>(Jet(fitted.across.step_latency.base())),
                    model::BytesPerSecond<Jet>(Jet(fitted.across.link.base()))};
  AddedTime<Jet> added =
      AddedBy(messages_, alone_, network, fitted.ranks, host, slower);
  step.slowed = Seconds<>(std::max(0.0, added.slowed.base().a));
  step.exposed = Seconds<>(added.exposed.base().a);
  step.traffic = std::move(added.traffic);
  const model::Workload& workload = messages_.workload();
  if (!model::RulesOf(workload).one_graph) step.host = ranks.host;
  if (host) step.host_update = model::HostUpdateTime(workload, *host);
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
