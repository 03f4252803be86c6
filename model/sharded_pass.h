#pragma once

// A pass over blocks whose parameters are gathered before they are used, and
// whose gradients are summed behind them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/error.h"
#include "model/sharding.h"
#include "model/units.h"

namespace trainfare::model {

// What a gather or sum of a unit costs whose computation is over before the
// next is issued: PyTorch's FSDP waits for gathers to end before it issues more
// (limit_all_gathers), and its own host time between them hides nothing. Read
// off adapters over two A100s, 0.29 to 0.42 ms (docs/models/sharding.md).
inline constexpr Seconds<> kSmallUnitTime{0.3e-3};

// A transfer by itself, and while the ranks compute; 0: there is none.
template <class T>
struct TransferTime {
  Seconds<T> alone;
  Seconds<T> beside;
};

// One unit of a pass: gathered, computed, summed.
template <class T>
struct ShardTask {
  TransferTime<T> gather;
  Seconds<T> compute;  // no transfer beside
  TransferTime<T> reduce;
};

template <class T>
struct ShardedPassTime {
  Seconds<T> waiting;  // nothing computes
  Seconds<T> slowed;   // what transfers add to computation beside them
  Seconds<T> sending;  // of all transfers, nothing beside them
};

// Waiting of a pass whose parameters are gathered one unit ahead:
//
//   channel  g_1, g_2, r_1, g_3, r_2, ..    one transfer at a time, in order
//   g_i      begins when unit i - 1 begins to compute; the first at once
//   r_i      begins when unit i is computed
//   unit i   computes when unit i - 1 has and g_i has arrived
//
// While both go on computation runs at `speed`, a transfer at alone / beside.
// The order is that of FSDP2's launches (pytorch, fully_shard: a gather is
// issued before the unit ahead of it computes; gathers and reductions share a
// communicator). Check: tests/model/sharding_test.cc.
template <class T>
ShardedPassTime<T> OverlapGathered(const std::vector<ShardTask<T>>& tasks,
                                   T speed) {
  struct Transfer {
    size_t after;  // so many units computed
    const TransferTime<T>* time;
  };
  std::vector<Transfer> channel;
  std::vector<size_t> needs;  // transfers done before unit i
  for (size_t i = 0; i < tasks.size(); ++i) {
    channel.push_back({i < 2 ? 0 : i - 1, &tasks[i].gather});
    needs.push_back(channel.size());
    if (i > 0) channel.push_back({i, &tasks[i - 1].reduce});
  }
  if (!tasks.empty()) channel.push_back({tasks.size(), &tasks.back().reduce});
  const Seconds<T> none;
  ShardedPassTime<T> pass;
  for (const Transfer& transfer : channel) pass.sending += transfer.time->alone;
  size_t computed = 0;
  size_t sent = 0;
  Seconds<T> computing = tasks.empty() ? none : tasks.front().compute;
  Seconds<T> sending = channel.empty() ? none : channel.front().time->alone;
  while (computed < tasks.size() || sent < channel.size()) {
    const bool computes = computed < tasks.size() && sent >= needs[computed];
    const bool sends = sent < channel.size() && computed >= channel[sent].after;
    ENSURE(computes || sends, "a unit waits for what is never sent");
    if (sends && !(sending > none)) {
      if (++sent < channel.size()) sending = channel[sent].time->alone;
    } else if (computes && !(computing > none)) {
      if (++computed < tasks.size()) computing = tasks[computed].compute;
    } else if (!computes) {
      pass.waiting += sending;
      sending = none;
    } else if (!sends) {
      computing = none;
    } else {
      const TransferTime<T>& time = *channel[sent].time;
      const T pace = time.alone / time.beside;
      const Seconds<T> until_computed = computing / speed;
      const Seconds<T> until_sent = sending / pace;
      if (until_computed <= until_sent) {
        pass.slowed += until_computed - computing;
        sending -= until_computed * pace;
        computing = none;
      } else {
        pass.slowed += until_sent * (T(1.0) - speed);
        computing -= until_sent * speed;
        sending = none;
      }
    }
  }
  return pass;
}

// Groups of ranks over `hosts` alike hosts: neighbours share one copy.
struct ShardGroups {
  int64_t shards = 1;
  int64_t copies = 1;
  int64_t local = 1;  // ranks of a host

  // The shards of one copy that are in a host, and the hosts that it is over.
  int64_t shards_in_host() const { return std::min(shards, local); }
  int64_t hosts_of_copy() const { return shards / shards_in_host(); }
  // The same of the ranks that have one shard.
  int64_t copies_in_host() const { return local / shards_in_host(); }
  int64_t hosts_of_shard() const { return copies / copies_in_host(); }
};

// All-gather or reduce-scatter of `size` bytes over the shards of one copy.
template <class T>
Seconds<T> GatherTime(const ShardGroups& groups,
                      Bytes<> size,
                      const RingLevel<T>& ring,
                      const RingLevel<T>& across) {
  return GatherOverHostsTime(
      groups.shards_in_host(), groups.hosts_of_copy(), size, ring, across);
}

// Gradients of `size` bytes: reduce-scatter over the shards, so many times half
// an all-reduce, then an all-reduce of each shard over the copies.
template <class T>
Seconds<T> ReduceTime(const ShardGroups& groups,
                      Bytes<> size,
                      const RingLevel<T>& ring,
                      const RingLevel<T>& across,
                      double reduce_scatter = 1.0) {
  const Bytes<> shard = size / static_cast<double>(groups.shards);
  return reduce_scatter * GatherTime(groups, size, ring, across) +
         AllReduceTime(groups.copies_in_host(),
                       groups.hosts_of_shard(),
                       shard,
                       ring,
                       across);
}

// What each rank sends of the two.
inline Bytes<> GatherTraffic(const ShardGroups& groups, Bytes<> size) {
  const auto n = static_cast<double>(groups.shards);
  return size * ((n - 1.0) / n);
}
inline Bytes<> ReduceTraffic(const ShardGroups& groups, Bytes<> size) {
  const auto n = static_cast<double>(groups.shards);
  const auto m = static_cast<double>(groups.copies);
  return GatherTraffic(groups, size) + size * (2.0 * (m - 1.0) / (m * n));
}

}  // namespace trainfare::model
