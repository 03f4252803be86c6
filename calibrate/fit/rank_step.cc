#include "calibrate/fit/rank_step.h"

#include <ceres/jet.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "calibrate/fit/exact_jet.h"
#include "hardware/catalog/kind_facts.h"
#include "model/stack_rules.h"

namespace trainfare::calibrate {
namespace {

using model::Seconds;

// Numbers that a group of ranks leaves open: latency and time a byte of the
// ring alone, the same beside computation, speed, logs of share and host; one
// more makes them even, so that derivatives are taken two at a time.
constexpr int kUnknowns = 8;
using RankJet = ceres::Jet<double, kUnknowns>;

// One of these numbers.
template <class T>
T Open(double value, [[maybe_unused]] int unknown) {
  if constexpr (std::is_same_v<T, RankJet>) {
    return T(value, unknown);
  } else {
    return value;
  }
}

double ValueOf(const RankJet& time) { return time.a; }
double ValueOf(double time) { return time; }

template <class T>
model::RingLevel<T> RingOf(const RingFit& fit, int first) {
  const T latency = Open<T>(fit.ring.step_latency.base(), first);
  const T inverse = Open<T>(1.0 / fit.ring.link.base(), first + 1);
  return {Seconds<T>(latency),
          model::BytesPerSecond<T>(1.0 / inverse),
          fit.ring.middle};
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
double LogSigma(const RankJet& time,
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
                       const RankMessages& messages)
    : workload_(workload), alone_(alone), messages_(messages) {}

template <class T>
RankStepTime StepOfRank::OverAs(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  RankStepTime step;
  step.computing = alone_ * (1.0 / ranks.share);
  const RankNetwork& fitted = ranks.network;
  using std::exp;
  const T slower = exp(-Open<T>(std::log(ranks.share), 5));
  model::RankNetwork<T> network;
  network.alone = RingOf<T>(fitted.alone, 0);
  network.beside =
      fitted.beside_timed ? RingOf<T>(fitted.beside, 2) : network.alone;
  network.speed = Open<T>(fitted.speed, 4);
  network.hosts = fitted.hosts;
  const CollectiveFactor gather = fitted.GatherFactor();
  const CollectiveFactor sum = fitted.SumFactor();
  network.gather = gather.factor;
  network.reduce_scatter = sum.factor;
  network.across = {Seconds<T>(T(fitted.across.step_latency.base())),
                    model::BytesPerSecond<T>(T(fitted.across.link.base()))};
  AddedTime<T> added = AddedBy(
      workload_, messages_, alone_, network, fitted.ranks, host, slower);
  step.slowed = Seconds<>(std::max(0.0, ValueOf(added.slowed.base())));
  step.exposed = Seconds<>(ValueOf(added.exposed.base()));
  step.traffic = std::move(added.traffic);
  if (!model::RulesOf(workload_).one_graph) step.host = ranks.host;
  if (host) step.host_update = model::HostUpdateTime(workload_, *host);
  if constexpr (std::is_same_v<T, RankJet>) {
    RankJet rank_host(step.host.base());
    rank_host.v[6] = step.host.base();  // by its logarithm
    const RankJet sending = added.all.base();
    const double collectives_error =
        messages_.by_unit() ? std::max(gather.error, sum.error) : 0.0;
    const auto log_sigma = [&](const RankJet& time) {
      return LogSigma(time, step.exposed, collectives_error, ranks);
    };
    // All else that is not of a pass that sends moves with the share alone.
    step.log_sigma = log_sigma(alone_.total().base() * slower + sending +
                               rank_host + step.host_update.base());
    step.backward_log_sigma =
        log_sigma(alone_.backward.total().base() * slower + sending);
  }
  return step;
}

RankStepTime StepOfRank::Over(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  return OverAs<RankJet>(ranks, host);
}

RankStepTime StepOfRank::TimeOver(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  return OverAs<double>(ranks, host);
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
