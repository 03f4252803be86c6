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

// Numbers that a group of ranks leaves open, besides its time on the host,
// which adds to a step as it is. The last two where the ring beside computation
// was timed by itself; even counts, as derivatives are taken two at a time.
enum Unknown {
  kOpenLatency,
  kOpenInverse,  // time a byte
  kOpenSpeed,
  kOpenLogShare,
  kOpenLatencyBeside,
  kOpenInverseBeside,
};
using OneRingJet = ceres::Jet<double, kOpenLatencyBeside>;
using TwoRingsJet = ceres::Jet<double, kOpenInverseBeside + 1>;

// One of these numbers.
template <class T>
T Open(double value, [[maybe_unused]] Unknown unknown) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(value, unknown);
  }
}

template <class T>
model::RingLevel<T> RingOf(const RingFit& fit,
                           Unknown latency,
                           Unknown inverse) {
  return {Seconds<T>(Open<T>(fit.ring.step_latency.base(), latency)),
          model::BytesPerSecond<T>(
              1.0 / Open<T>(1.0 / fit.ring.link.base(), inverse)),
          fit.ring.middle};
}

// A network between hosts, which leaves nothing open.
template <class T>
model::RingLevel<T> AcrossOf(const RankNetwork& fitted) {
  return {Seconds<T>(T(fitted.across.step_latency.base())),
          model::BytesPerSecond<T>(T(fitted.across.link.base()))};
}

// The ring beside computation: that alone, unless it was timed.
template <class T>
model::RingLevel<T> BesideOf(const RankNetwork& fitted,
                             const model::RingLevel<T>& alone) {
  if (!fitted.beside_timed) return alone;
  if constexpr (std::is_same_v<T, OneRingJet>) {
    ENSURE(false, "two rings have their own derivatives");
  } else {
    return RingOf<T>(fitted.beside, kOpenLatencyBeside, kOpenInverseBeside);
  }
}

// g^T C g of one ring's two numbers.
double RingVariance(const RingFit& fit, double by_latency, double by_inverse) {
  const double latency = by_latency * fit.latency_error.base();
  const double inverse = by_inverse * fit.link_error / fit.ring.link.base();
  return latency * latency + inverse * inverse +
         2.0 * fit.correlation * latency * inverse;
}

// Standard deviation of log(time), of which messages nothing hides are
// `exposed` and the host's `host`, by what the group leaves open, and how the
// other collectives scatter about their factors.
template <class Jet>
double LogSigma(const Jet& time,
                const AddedTime<Jet>& added,
                Seconds<> host_time,
                double collectives_error,
                const RankFit& ranks) {
  const RankNetwork& fitted = ranks.network;
  const auto by = [&](Unknown unknown) { return time.v[unknown] / time.a; };
  const double speed = by(kOpenSpeed) * fitted.speed_error;
  const double share = by(kOpenLogShare) * ranks.share_error;
  const double host = host_time.base() / time.a * ranks.host_error;
  const UnhiddenUnitsFit& unhidden = ranks.unhidden;
  const auto share_of = [&](double count, Seconds<> each) {
    return count * each.base() / time.a;
  };
  const double units =
      std::hypot(share_of(added.small_units, unhidden.times.small_unit) *
                     unhidden.small_unit_error,
                 share_of(added.expert_matrices, unhidden.times.expert_matrix) *
                     unhidden.expert_matrix_error);
  // What the ring's formula leaves of single messages.
  const double messages = std::hypot(fitted.alone.scatter, collectives_error) *
                          (ValueOf(added.exposed.base()) / time.a);
  double rings = 0;
  if (fitted.ranks > 1) {  // one rank alone has none
    rings = RingVariance(fitted.alone, by(kOpenLatency), by(kOpenInverse));
    if constexpr (std::is_same_v<Jet, TwoRingsJet>) {
      rings += RingVariance(
          fitted.beside, by(kOpenLatencyBeside), by(kOpenInverseBeside));
    }
  }
  const double variance = rings + speed * speed + share * share + host * host +
                          2.0 * ranks.host_share_correlation * share * host +
                          messages * messages + units * units;
  return std::sqrt(std::max(variance, 0.0));
}

// What the group says that a rank has beside it.
template <class T>
RankSurroundings<T> SurroundingsOf(
    const RankFit& ranks, const std::optional<model::HostPath<double>>& host) {
  const RankNetwork& fitted = ranks.network;
  RankSurroundings<T> around;
  around.ranks = fitted.ranks;
  around.host = host;
  using std::exp;
  around.slower = exp(-Open<T>(std::log(ranks.share), kOpenLogShare));
  model::RankNetwork<T>& network = around.network;
  network.alone = RingOf<T>(fitted.alone, kOpenLatency, kOpenInverse);
  network.beside = BesideOf<T>(fitted, network.alone);
  network.speed = Open<T>(fitted.speed, kOpenSpeed);
  network.hosts = fitted.hosts;
  network.gather = fitted.GatherFactor().factor;
  network.reduce_scatter = fitted.SumFactor().factor;
  network.across = AcrossOf<T>(fitted);
  const UnhiddenUnits<double>& times = ranks.unhidden.times;
  around.unhidden = {Seconds<T>(T(times.small_unit.base())),
                     Seconds<T>(T(times.expert_matrix.base()))};
  return around;
}

}  // namespace

StepOfRank::StepOfRank(const model::Workload& workload,
                       const hardware::StepTime<double>& alone,
                       const RankMessages& messages)
    : joined_(workload, messages), steps_{alone} {}

StepOfRank::StepOfRank(const ModelStages& stages,
                       const std::vector<hardware::StepTime<double>>& steps,
                       const RankPlacement& placement)
    : joined_(stages, placement), steps_(steps) {}

template <class T>
void StepOfRank::SetDoubt(const StepBesideOthers<T, double>& rank,
                          const RankFit& ranks,
                          const T& slower,
                          RankStepTime& step) const {
  const RankNetwork& fitted = ranks.network;
  const double collectives_error =
      joined_.messages().by_unit()
          ? std::max(fitted.GatherFactor().error, fitted.SumFactor().error)
          : 0.0;
  const auto log_sigma = [&](const T& time, Seconds<> host_time) {
    return LogSigma(time, rank.added, host_time, collectives_error, ranks);
  };
  const T sending = rank.added.all.base();
  // All else that is not of a pass that sends moves with the share alone.
  step.log_sigma = log_sigma(rank.alone.total().base() * slower + sending +
                                 step.host.base() + step.host_update.base(),
                             step.host);
  step.backward_log_sigma =
      log_sigma(rank.alone.backward.total().base() * slower + sending, {});
}

template <class T>
RankStepTime StepOfRank::OverAs(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  const RankSurroundings<T> around = SurroundingsOf<T>(ranks, host);
  StepBesideOthers<T, double> rank = joined_.Step<T, double>(steps_, around);
  AddedTime<T>& added = rank.added;
  const model::Workload& workload = joined_.workload();
  RankStepTime step;
  step.computing = rank.alone * (1.0 / ranks.share);
  step.waiting = Seconds<>(ValueOf(rank.waits.base()));
  step.slowed = Seconds<>(std::max(0.0, ValueOf(added.slowed.base())));
  step.exposed = Seconds<>(ValueOf(added.exposed.base()));
  step.traffic = std::move(added.traffic);
  if (model::RulesOf(workload).launches != model::Launches::kOnce) {
    step.host = ranks.host;
  }
  if (host) step.host_update = model::HostUpdateTime(workload, *host);
  if constexpr (!std::is_same_v<T, double>) {
    SetDoubt<T>(rank, ranks, around.slower, step);
  }
  return step;
}

RankStepTime StepOfRank::Over(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  return ranks.network.beside_timed ? OverAs<TwoRingsJet>(ranks, host)
                                    : OverAs<OneRingJet>(ranks, host);
}

RankStepTime StepOfRank::TimeOver(
    const RankFit& ranks,
    const std::optional<model::HostPath<double>>& host) const {
  return OverAs<double>(ranks, host);
}

MessageTime AllReduceOver(const RankFit& ranks, model::Bytes<> size) {
  const RankNetwork& fitted = ranks.network;
  const OneRingJet time =
      model::AllReduceTime<OneRingJet>(
          fitted.ranks / fitted.hosts,
          fitted.hosts,
          size,
          RingOf<OneRingJet>(fitted.alone, kOpenLatency, kOpenInverse),
          AcrossOf<OneRingJet>(fitted))
          .base();
  const double ring = RingVariance(fitted.alone,
                                   time.v[kOpenLatency] / time.a,
                                   time.v[kOpenInverse] / time.a);
  return {Seconds<>(time.a),
          std::hypot(std::sqrt(std::max(ring, 0.0)), fitted.alone.scatter)};
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
