#pragma once

// Time of an all-reduce: rings, alone and in two levels.

#include <cstdint>

#include "model/error.h"
#include "model/units.h"

namespace trainfare::model {

// Time of one all-reduce over a ring (latency + bandwidth form).
//
//   t = 2 (n - 1) (a + S / (n B))
//
//   n  ranks in the group                         [1]    n >= 1
//   S  message size on each rank                  [B]
//   a  latency of one ring step                   [s]
//   B  slowest link, one direction                [B/s]
//   Both are fitted (calibrate/fit/ring_fit.h).
//
// Assumes equal shards and steps gated by the slowest link. n == 1 gives 0.
// With a = 0 this is the bus-bandwidth relation of nccl-tests PERFORMANCE.md.
// Not modelled: tree/NVLS algorithms, protocol switch, contention.
// Source: Patarasuk & Yuan 2009. Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> RingAllReduceTime(int64_t n,
                             Bytes<> size,
                             Seconds<T> step_latency,
                             BytesPerSecond<T> link) {
  ENSURE(n >= 1, "an all-reduce needs a rank");
  if (n == 1) return Seconds<T>();
  const auto ranks = static_cast<double>(n);
  return 2.0 * (ranks - 1.0) * (step_latency + size / (ranks * link));
}

// One level of a cluster: what a ring over it costs a step, and its link.
template <class T>
struct RingLevel {
  Seconds<T> step_latency;
  BytesPerSecond<T> link;
};

// Time of an all-reduce over `nodes` hosts of `local` ranks: reduce-scatter in
// each host, all-reduce of every shard across hosts, all-gather in each host.
//
//   t = 2 (l - 1) (a1 + S / (l B1)) + 2 (m - 1) (a2 + S / (l m B2))
//
//   l, m    ranks in a host, hosts                [1]
//   S       message size on each rank             [B]
//   a1, B1  ring step and link inside a host      [s], [B/s]
//   a2, B2  of one rank's share of the network    [s], [B/s]
//
// The l shards cross hosts at the same time, so B2 is what one rank gets while
// all send. One host is the ring alone; one rank a host is the network's ring.
// Not modelled: overlap of the two levels by pipelining of chunks.
// Source: Jia et al. 2018 (hierarchical all-reduce), section 3.2.
// Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> HierarchicalAllReduceTime(int64_t local,
                                     int64_t nodes,
                                     Bytes<> size,
                                     const RingLevel<T>& inside,
                                     const RingLevel<T>& across) {
  ENSURE(local >= 1 && nodes >= 1, "an all-reduce needs a rank");
  const Bytes<> shard = size / static_cast<double>(local);
  return RingAllReduceTime(local, size, inside.step_latency, inside.link) +
         RingAllReduceTime(nodes, shard, across.step_latency, across.link);
}

}  // namespace trainfare::model
