#pragma once

// Time of collectives: rings, trees and sums in a switch, in a host and over
// several.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "model/error.h"
#include "model/units.h"
#include "model/words.h"

namespace trainfare::model {

// Ranks of a group that lie in one host, and hosts that it is over.
struct GroupShape {
  int64_t in_host = 1;
  int64_t hosts = 1;

  int64_t ranks() const { return in_host * hosts; }
};

// Time of one message from a rank to another:
//
//   t = a + S / B
//
//   a  latency of the message    [s]
//   S  its size                  [B]
//   B  link that it goes over    [B/s]
//
// Source: Hockney 1994, "The communication challenge for MPP" (latency and
// bandwidth). Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> PointToPointTime(Bytes<> size,
                            Seconds<T> latency,
                            BytesPerSecond<T> link) {
  return latency + size / link;
}

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
// Not modelled: protocol switch, contention.
// Source: Patarasuk & Yuan 2009. Check: tests/model/collective_test.cc.
template <class T>
Seconds<T> RingAllReduceTime(int64_t n,
                             Bytes<> size,
                             Seconds<T> step_latency,
                             BytesPerSecond<T> link) {
  ENSURE(n >= 1, "an all-reduce needs a rank");
  if (n == 1) return Seconds<T>();
  const auto ranks = static_cast<double>(n);
  return 2.0 * (ranks - 1.0) *
         PointToPointTime<T>(size, step_latency, ranks * link);
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

// Bytes of a collective as nccl-tests count them for the bandwidth of the bus:
// those that a ring's link would carry, 2 (n - 1)/n of an all-reduce's, half of
// that of the others'. Over its time it is the link's rate, whatever n.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md.
inline Bytes<> BusBytes(Collective collective, int64_t n, Bytes<> size) {
  ENSURE(n >= 1, "a collective needs a rank");
  const auto ranks = static_cast<double>(n);
  const double passes = collective == Collective::kAllReduce ? 2.0 : 1.0;
  return size * (passes * (ranks - 1.0) / ranks);
}

// A switch between ranks that sums what they send and copies it to all of them
// (NVLink SHARP): the share of a ring's link that gets through it, and what a
// collective takes before its first byte. Share 0: there is none.
struct SummingSwitch {
  double share = 0;
  Seconds<> latency;
};

// One level of a cluster: what a ring over it costs a step, its link, and what
// sums in the middle of it.
template <class T>
struct RingLevel {
  Seconds<T> step_latency;
  BytesPerSecond<T> link;
  SummingSwitch middle = {};
};

// Time of an all-reduce in such a switch, and of a gather or a sum that
// scatters:
//
//   t = a + (1 + 1/n) S / (k B)        t = a + (n - 1)/n S / (k B)
//
//   n, S, B  ranks, message size on each, link as above
//   a, k     latency and share of the switch             [s], [1]
//
// Of an all-reduce each rank has its n-th of every message summed on the way to
// it, and sent from it to all.
// Source: NVIDIA/nccl issue 2140 (the bytes; bus bandwidths of 8 H100 and 8
// B300 with and without it, of which k is the mean). Check:
// tests/model/collective_test.cc.
template <class T>
Seconds<T> SwitchTime(Collective collective,
                      int64_t n,
                      Bytes<> size,
                      const RingLevel<T>& inside) {
  ENSURE(n >= 1 && inside.middle.share > 0, "no switch sums");
  const auto ranks = static_cast<double>(n);
  const double sent = collective == Collective::kAllReduce ? 1.0 + 1.0 / ranks
                                                           : 1.0 - 1.0 / ranks;
  return Seconds<T>(T(inside.middle.latency.base())) +
         sent * (size / (inside.middle.share * inside.link));
}

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
// Not modelled: the protocols for short messages.
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

// Time of a message that goes round a ring of ranks, in n - 1 steps of all of it:
//
//   t = (n - 1) (a1 + S / B1), over hosts (n - 1) (a2 + S / min(B1, l B2))
//
// where each step waits for the slowest link: of a host's l ranks of the group
// one sends out of it, and as many groups as it has room for share its network.
// S is what each rank passes on.
// Source: Liu et al. 2023, "Ring Attention", section 3. Check:
// tests/model/collective_test.cc.
template <class T>
Seconds<T> RoundTime(int64_t local,
                     int64_t hosts,
                     Bytes<> size,
                     const RingLevel<T>& inside,
                     const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 1, "a round needs a rank");
  const auto steps = static_cast<double>(local * hosts - 1);
  if (hosts == 1) {
    return steps * PointToPointTime(size, inside.step_latency, inside.link);
  }
  const BytesPerSecond<T> network = static_cast<double>(local) * across.link;
  const BytesPerSecond<T> link =
      local > 1 ? std::min(inside.link, network) : network;
  return steps * PointToPointTime(size, across.step_latency, link);
}

// Time in which each of n ranks sends every other its n-th of so many bytes:
//
//   t = (n - 1) a1 + (n - 1)/n S / B1
//   t = max((l - 1) a1 + (l - 1)/n S / B1, (n - l) a2 + (n - l)/n S / B2)
//
// the second over hosts, between which messages go beside those within.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md (all-to-all: (n - 1)/n of the
// bytes over each rank's link); NCCL makes it of a send to each. Check:
// tests/model/collective_test.cc.
// Not modelled: sends that start together.
template <class T>
Seconds<T> AllToAllTime(int64_t local,
                        int64_t hosts,
                        Bytes<> size,
                        const RingLevel<T>& inside,
                        const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 1, "an all-to-all needs a rank");
  const auto ranks = static_cast<double>(local * hosts);
  const auto others = static_cast<double>(local - 1);
  const auto to_one = [&](const RingLevel<T>& level) {
    return PointToPointTime<T>(size, level.step_latency, ranks * level.link);
  };
  Seconds<T> within = others * to_one(inside);
  if (hosts == 1) return within;
  const double outside = ranks - static_cast<double>(local);
  return std::max(within, outside * to_one(across));
}

// Of a row that meets so many of `places`, alike, as often as it leaves its own.
inline double RowsLeaving(int64_t places, double met) {
  return met * static_cast<double>(places - 1) / static_cast<double>(places);
}

// Time in which ranks send others what is of these, each row once to a host that
// it meets, from rank to rank of the same number, and there on to each rank:
//
//   t = max((l - 1) a1 + r (l - 1)/l S / B1, (h - 1) a2 + d (h - 1)/h S / B2)
//
//   l, h   ranks of a host, hosts                      [1]
//   S      rows of each rank, each once                [B]
//   r, d   ranks and hosts that a row meets            [1]
//
// of which both go on at once, row by row. What comes back is summed in each host
// first, and is as much.
// Source: deepseek-ai/DeepEP, documentation of its first version (normal kernels;
// forwarding from the network to NVLink). Its bandwidths count rows that stay in
// a host: 51 GB/s of 8 hosts are 45 over a link of 50. Check:
// tests/model/collective_test.cc.
// Not modelled: processors that the kernels take from computation beside them.
template <class T>
Seconds<T> RowsByHostTime(int64_t local,
                          int64_t hosts,
                          Bytes<> rows,
                          double ranks_met,
                          double hosts_met,
                          const RingLevel<T>& inside,
                          const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 1, "rows go to ranks");
  const auto over = [&](int64_t places, double met, const RingLevel<T>& level) {
    return static_cast<double>(places - 1) * level.step_latency +
           RowsLeaving(places, met) * (rows / level.link);
  };
  Seconds<T> within = over(local, ranks_met, inside);
  if (hosts == 1) return within;
  return std::max(within, over(hosts, hosts_met, across));
}

// Bytes that the busiest host sends of an all-reduce by two trees, each half of
// the message, over those of the message: of two hosts each is the root of one
// tree and the leaf of the other, of more some have two below them.
inline double SentByTrees(int64_t hosts) { return hosts == 2 ? 1.0 : 2.0; }

// Steps up a tree over so many hosts.
inline int64_t LevelsOfTree(int64_t hosts) {
  return static_cast<int64_t>(
      std::bit_width(static_cast<uint64_t>(hosts - 1)));  // ceil(log2)
}

// The same by two trees over the hosts, and in each host a chain, or a switch
// that sums:
//
//   t = 2 [(l - 1) a1 + ceil(log2 h) a2] + max(2 S / B1, c S / (l B2))
//   t = a + 2 ceil(log2 h) a2 + max((1 + 1/l) S / (k B1), c S / (l B2))
//
// where c = SentByTrees(h). Few steps.
// Source: NVIDIA/nccl src/graph/tuning.cc (tree; of two hosts the link inside);
// Sanders, Speck & Traeff 2009 (two trees). Check:
// tests/model/collective_test.cc.
template <class T>
Seconds<T> TreeOverHostsTime(int64_t local,
                             int64_t hosts,
                             Bytes<> size,
                             const RingLevel<T>& inside,
                             const RingLevel<T>& across) {
  ENSURE(local >= 1 && hosts >= 2, "a tree needs hosts");
  const Seconds<T> between =
      SentByTrees(hosts) * (size / (static_cast<double>(local) * across.link));
  const Seconds<T> levels =
      2.0 * static_cast<double>(LevelsOfTree(hosts)) * across.step_latency;
  if (local == 1) return levels + between;
  const Seconds<T> chain =
      2.0 * static_cast<double>(local - 1) * inside.step_latency +
      std::max(2.0 * (size / inside.link), between);
  if (inside.middle.share == 0) return levels + chain;
  const Seconds<T> latency(T(inside.middle.latency.base()));
  const Seconds<T> summed =
      SwitchTime(Collective::kAllReduce, local, size, inside) - latency;
  return levels + std::min(chain, latency + std::max(summed, between));
}

// The time of an all-reduce over hosts: the fastest of these, as NCCL chooses.
template <class T>
Seconds<T> AllReduceTime(int64_t local,
                         int64_t hosts,
                         Bytes<> size,
                         const RingLevel<T>& inside,
                         const RingLevel<T>& across) {
  Seconds<T> ring = RingOverHostsTime(local, hosts, size, inside, across);
  if (hosts > 1) {
    return std::min(ring,
                    TreeOverHostsTime(local, hosts, size, inside, across));
  }
  if (inside.middle.share == 0 || local == 1) return ring;
  return std::min(ring,
                  SwitchTime(Collective::kAllReduce, local, size, inside));
}

// The time of a gather, or of a sum that scatters, of `size` bytes of all ranks
// together: half a ring; in a host with a switch that sums, or over hosts of one
// rank each, the faster of that and of the switch, or of a tree for each rank,
//
//   t = ceil(log2 h) a2 + (h - 1)/h S / (q B2)
//
// whose short steps get q = 0.75 of a link.
// Source: NVIDIA/nccl src/graph/tuning.cc (PAT, since 2.23). Check:
// tests/model/collective_test.cc.
template <class T>
Seconds<T> GatherOverHostsTime(int64_t local,
                               int64_t hosts,
                               Bytes<> size,
                               const RingLevel<T>& inside,
                               const RingLevel<T>& across) {
  constexpr double kShareOfTrees = 0.75;
  Seconds<T> ring = 0.5 * RingOverHostsTime(local, hosts, size, inside, across);
  if (local > 1 && hosts == 1 && inside.middle.share > 0) {
    return std::min(ring,
                    SwitchTime(Collective::kAllGather, local, size, inside));
  }
  if (local > 1 || hosts == 1) return ring;
  const auto ranks = static_cast<double>(hosts);
  return std::min(
      ring,
      static_cast<double>(LevelsOfTree(hosts)) * across.step_latency +
          (1.0 - 1.0 / ranks) * (size / (kShareOfTrees * across.link)));
}

}  // namespace trainfare::model
