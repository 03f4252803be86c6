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
#include "model/overlap.h"
#include "model/sharding.h"
#include "model/units.h"

namespace trainfare::model {

// A transfer by itself, and while the ranks compute; 0: there is none.
template <class T>
struct TransferTime {
  Seconds<T> alone;
  Seconds<T> beside;
};

// Units of a pass, so many alike one behind the other: each gathered, computed,
// summed.
template <class T>
struct ShardTask {
  TransferTime<T> gather;
  Seconds<T> compute;  // no transfer beside
  TransferTime<T> reduce;
  int64_t count = 1;
};

template <class T>
struct ShardedPassTime {
  Seconds<T> waiting;  // nothing computes
  Seconds<T> slowed;   // what transfers add to computation beside them
  Seconds<T> sending;  // of all transfers, nothing beside them

  // `times` more of `other`.
  void Add(const ShardedPassTime& other, double times) {
    waiting += other.waiting * times;
    slowed += other.slowed * times;
    sending += other.sending * times;
  }
};

// A unit that computes, and beside it a sum and a gather, one after the other:
// the next unit begins when all three are done.
template <class T>
ShardedPassTime<T> UnitBeside(Seconds<T> computing,
                              const TransferTime<T>& reduce,
                              const TransferTime<T>& gather,
                              const T& speed) {
  ShardedPassTime<T> unit;
  for (const TransferTime<T>* transfer : {&reduce, &gather}) {
    if (!(transfer->alone > Seconds<T>())) continue;
    unit.sending += transfer->alone;
    const Seconds<T> until_computed = computing / speed;
    if (until_computed <= transfer->beside) {
      const T pace = transfer->alone / transfer->beside;
      unit.slowed += until_computed - computing;
      unit.waiting += transfer->alone - until_computed * pace;
      computing = Seconds<T>();
    } else {
      unit.slowed += transfer->beside * (T(1.0) - speed);
      computing -= transfer->beside * speed;
    }
  }
  return unit;
}

// Waiting of a pass whose parameters are gathered one unit ahead:
//
//   channel  g_1, g_2, r_1, g_3, r_2, ..    one transfer at a time, in order
//   g_i      begins when unit i - 1 begins to compute; the first at once
//   r_i      begins when unit i is computed
//   unit i   computes when unit i - 1 has and g_i has arrived
//
// so that beside unit i go r_(i-1) and g_(i+1), and nothing else. While both go
// on computation runs at `speed`, a transfer at alone / beside. The order is
// that of FSDP2's launches (pytorch, fully_shard: a gather is issued before the
// unit ahead of it computes; gathers and reductions share a communicator).
// Check: tests/model/sharding_test.cc.
template <class T>
ShardedPassTime<T> OverlapGathered(const std::vector<ShardTask<T>>& tasks,
                                   T speed) {
  ShardedPassTime<T> pass;
  if (tasks.empty()) return pass;
  const auto alone = [&](const TransferTime<T>& transfer) {
    pass.waiting += transfer.alone;
    pass.sending += transfer.alone;
  };
  const TransferTime<T> none;
  alone(tasks.front().gather);
  const TransferTime<T>* behind = &none;  // the sum of the unit before
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ShardTask<T>& task = tasks[i];
    const auto unit = [&](const TransferTime<T>& ahead, int64_t times) {
      pass.Add(UnitBeside<T>(task.compute, *behind, ahead, speed),
               static_cast<double>(times));
      behind = &task.reduce;
    };
    if (task.count > 1) unit(task.gather, 1);
    if (task.count > 2) unit(task.gather, task.count - 2);
    unit(i + 1 < tasks.size() ? tasks[i + 1].gather : none, 1);
  }
  alone(*behind);
  return pass;
}

// A pass of ranks that hold all parameters: sums go behind the units that
// complete them, and no unit waits for one. Nothing is gathered.
template <class T>
ShardedPassTime<T> OverlapSummed(const std::vector<ShardTask<T>>& tasks,
                                 T speed) {
  ShardedPassTime<T> pass;
  std::vector<ContendedTask<T>> pieces;
  pieces.reserve(tasks.size());
  Seconds<T> computing;
  for (const ShardTask<T>& task : tasks) {
    ENSURE(task.count == 1 && !(task.gather.alone > Seconds<T>()),
           "units one by one, of which none is gathered");
    pieces.push_back({task.compute, task.reduce.alone, task.reduce.beside});
    computing += task.compute;
    pass.sending += task.reduce.alone;
  }
  const OverlapTime<T> time = OverlapContended(pieces, speed);
  pass.slowed = time.compute_end - computing;
  pass.waiting = time.exposed();
  return pass;
}

// Groups of ranks over `hosts` alike hosts: neighbours share one copy.
struct ShardGroups {
  int64_t shards = 1;
  int64_t copies = 1;
  int64_t local = 1;  // ranks of a host

  // The shards of one copy that are in a host, and the hosts that it is over.
  int64_t shards_in_host() const { return std::min(shards, local); }
  int64_t hosts_of_copy() const { return Whole(shards, shards_in_host()); }
  // The same of the ranks that have one shard.
  int64_t copies_in_host() const { return Whole(local, shards_in_host()); }
  int64_t hosts_of_shard() const { return Whole(copies, copies_in_host()); }

 private:
  static int64_t Whole(int64_t all, int64_t part) {
    ENSURE(all % part == 0, "groups of ranks and hosts divide each other");
    return all / part;
  }
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
  return BusBytes(Collective::kAllGather, groups.shards, size);
}
inline Bytes<> ReduceTraffic(const ShardGroups& groups, Bytes<> size) {
  const Bytes<> shard = size / static_cast<double>(groups.shards);
  return GatherTraffic(groups, size) +
         BusBytes(Collective::kAllReduce, groups.copies, shard);
}

}  // namespace trainfare::model
