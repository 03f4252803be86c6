#pragma once

// Time of collectives: rings and trees, in a host and over several.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "model/error.h"
#include "model/units.h"
#include "model/words.h"

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

enum class Collective { kAllReduce, kAllGather, kReduceScatter };
template <>
inline constexpr auto kWords<Collective> =
    Words<Collective>("collective",
                      {{Collective::kAllReduce, "all_reduce"},
                       {Collective::kAllGather, "all_gather"},
                       {Collective::kReduceScatter, "reduce_scatter"}});

// A gather, or a sum that scatters, is half of an all-reduce: n - 1 messages of
// S / n, where S is what all ranks have together.
template <class T>
Seconds<T> RingTime(Collective collective,
                    int64_t n,
                    Bytes<> size,
                    Seconds<T> step_latency,
                    BytesPerSecond<T> link) {
  const double share = collective == Collective::kAllReduce ? 1.0 : 0.5;
  return share * RingAllReduceTime(n, size, step_latency, link);
}

// One level of a cluster: what a ring over it costs a step, and its link.
template <class T>
struct RingLevel {
  Seconds<T> step_latency;
  BytesPerSecond<T> link;
};

// Time of an all-reduce by one ring through all ranks of `hosts` hosts, `local`
// ranks on each, chunks of the message following each other.
//
//   t = 2 [(n - h) a1 + (h - 1) a2] + 2 (n - 1)/n S / min(B1, l B2)
//
//   l, h, n  ranks of a host, hosts, l h              [1]
//   S        message size on each rank                [B]
//   a1, B1   ring step and link inside a host         [s], [B/s]
//   a2, B2   of one rank's share of the network       [s], [B/s]
//
// A chunk passes n - 1 links, h - 1 of them between hosts. The rings of all
// ranks leave a host together, so that they have its whole network, l B2. One
// host, or one rank a host, is RingAllReduceTime. A gather or a sum that
// scatters is half of it.
// Source: NVIDIA/nccl src/graph/tuning.cc (ring: steps inside and between).
// Not modelled: the protocols for short messages; sums in a switch.
// Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> RingOverHostsTime(int64_t local,
                             int64_t hosts,
                             Bytes<> size,
                             const RingLevel<T>& inside,
                             const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 1, "an all-reduce needs a rank");
  if (hosts == 1) {
    return RingAllReduceTime(local, size, inside.step_latency, inside.link);
  }
  if (local == 1) {
    return RingAllReduceTime(hosts, size, across.step_latency, across.link);
  }
  const auto ranks = static_cast<double>(local * hosts);
  const BytesPerSecond<T> network = static_cast<double>(local) * across.link;
  const BytesPerSecond<T> link = std::min(inside.link, network);
  return 2.0 * static_cast<double>(local * hosts - hosts) *
             inside.step_latency +
         2.0 * static_cast<double>(hosts - 1) * across.step_latency +
         2.0 * (ranks - 1.0) * (size / (ranks * link));
}

// The same by two trees over the hosts, each half of the message, and a chain
// in each host: few steps, every host sends and receives all of it.
//
//   t = 2 [(l - 1) a1 + ceil(log2 h) a2] + 2 S / min(B1, l B2)
//
// Source: NVIDIA/nccl src/graph/tuning.cc (tree); Sanders, Speck & Traeff 2009
// (two trees). Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> TreeOverHostsTime(int64_t local,
                             int64_t hosts,
                             Bytes<> size,
                             const RingLevel<T>& inside,
                             const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 2, "a tree needs hosts");
  const auto levels =
      std::bit_width(static_cast<uint64_t>(hosts - 1));  // ceil(log2)
  const BytesPerSecond<T> network = static_cast<double>(local) * across.link;
  const BytesPerSecond<T> link =
      local > 1 ? std::min(inside.link, network) : network;
  return 2.0 * static_cast<double>(local - 1) * inside.step_latency +
         2.0 * static_cast<double>(levels) * across.step_latency +
         2.0 * (size / link);
}

// The time of an all-reduce over hosts: the faster of the two, as NCCL chooses.
template <class T>
Seconds<T> AllReduceTime(int64_t local,
                         int64_t hosts,
                         Bytes<> size,
                         const RingLevel<T>& inside,
                         const RingLevel<T>& across) {
  Seconds<T> ring = RingOverHostsTime(local, hosts, size, inside, across);
  if (hosts == 1) return ring;
  return std::min(ring, TreeOverHostsTime(local, hosts, size, inside, across));
}

}  // namespace trainfare::model
