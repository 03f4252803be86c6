#pragma once

// The network of one group of ranks, as fits of timed collectives have it.

#include <cstdint>
#include <optional>

#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/units.h"

namespace trainfare::calibrate {

// A ring with how sure one is of it.
struct RingFit {
  model::RingLevel<double> ring;
  // Standard errors: of the latency in seconds (0 where it stands on its bound
  // 0), of the link relative; and how the two errors go together, latency and
  // time a byte, from -1 to 1.
  model::Seconds<> latency_error;
  double link_error = 0;
  double correlation = 0;
  double scatter = 0;  // of model / measured, relative
};

// As far as a factor may be: a fit file takes no other.
inline constexpr double kLeastCollectiveFactor = 1e-3;
inline constexpr double kMostCollectiveFactor = 1e3;

// Times of a collective over those of half an all-reduce by the ring.
struct CollectiveFactor {
  double factor = 1.0;
  double error = 0;  // standard deviation of its logarithm, by size
};

// What the all-reduces of one group of ranks say of its network.
struct RankNetwork {
  int64_t ranks = 0;
  RingFit alone;
  // While the ranks compute, and how fast they then do; as alone where that
  // was not timed.
  RingFit beside;
  bool beside_timed = false;
  double speed = 1.0;
  double speed_error = 0.0;
  // Where they were timed; else half of an all-reduce.
  std::optional<CollectiveFactor> all_gather = std::nullopt;
  std::optional<CollectiveFactor> reduce_scatter = std::nullopt;
  CollectiveFactor GatherFactor() const {
    return all_gather.value_or(CollectiveFactor());
  }
  CollectiveFactor SumFactor() const {
    return reduce_scatter.value_or(CollectiveFactor());
  }
  // The link of one rank while all of its host send, as its datasheet has it.
  int64_t hosts = 1;
  model::RingLevel<double> across = {};

  model::RankNetwork<double> Formula() const {
    return {alone.ring,
            beside.ring,
            speed,
            hosts,
            across,
            GatherFactor().factor,
            SumFactor().factor};
  }
};

}  // namespace trainfare::calibrate
