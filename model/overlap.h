#pragma once

// Backward pass and gradient all-reduce at the same time.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/architecture.h"
#include "model/units.h"

namespace trainfare::model {

// What of `sending` is longer than what goes on beside it.
template <class T>
Seconds<T> LongerThan(Seconds<T> sending, Seconds<T> beside) {
  return sending > beside ? sending - beside : Seconds<T>();
}

// One piece of the backward pass: computed, then sent.
template <class T>
struct OverlapTask {
  Seconds<T> compute;        // since the piece before it
  Seconds<T> communication;  // of the gradients that this piece completes
};

template <class T>
struct OverlapTime {
  Seconds<T> compute_end;  // when the last piece is computed
  Seconds<T> end;          // when its gradients have arrived, too
  // Communication that no computation hides: end - compute_end.
  Seconds<T> exposed() const { return end - compute_end; }
};

// End of a backward pass whose gradients leave while it goes on.
//
//   ready_i = ready_{i-1} + o + c_i          (no o before the first)
//   start_i = max(ready_i, done_{i-1})
//   done_i  = start_i + d_i
//   end     = max(ready_n, done_n)
//
//   c_i  computation of piece i, in backward order   [s]
//   d_i  all-reduce of its gradients, 0 for none     [s]
//   o    gap between two pieces                      [s]
//
// One transfer at a time; computation never waits for the channel.
// Not modelled: computation and communication slow each other.
// Source: Li et al., VLDB 2020 (PyTorch Distributed), 3.2.3. Check, by layer
// times that were measured: tests/model/overlap_test.cc.
template <class T>
OverlapTime<T> OverlapBackward(const std::vector<OverlapTask<T>>& tasks,
                               Seconds<T> gap) {
  Seconds<T> ready;
  Seconds<T> done;
  bool first = true;
  for (const OverlapTask<T>& task : tasks) {
    if (!first) ready += gap;
    first = false;
    ready += task.compute;
    done = std::max(ready, done) + task.communication;
  }
  return {ready, std::max(ready, done)};
}

// One piece where both slow each other.
template <class T>
struct ContendedTask {
  Seconds<T> compute;        // since the piece before it, no transfer beside
  Seconds<T> communication;  // of its gradients, no computation beside
  Seconds<T> communication_beside;  // the same while computation goes on
};

// The same where computation and communication share processors and memory:
// while both go on, computation runs at `speed` (1: undisturbed) and transfer i
// at d_i / d'_i.
//
//   v    speed of computation beside a transfer        [1]    0 < v <= 1
//   d_i  all-reduce alone                              [s]
//   d'_i all-reduce beside computation                 [s]    d'_i >= d_i
//
// One transfer at a time, in order. Check: tests/model/overlap_test.cc.
template <class T>
OverlapTime<T> OverlapContended(const std::vector<ContendedTask<T>>& tasks,
                                T speed) {
  Seconds<T> now;
  Seconds<T> compute_end;
  size_t sent = 0;
  // What is left of the transfer under way; its share of time alone.
  Seconds<T> sending;
  const auto next_transfer = [&](size_t computed) {
    while (sent < computed && !(sending > Seconds<T>())) {
      sending = tasks[sent].communication;
      if (!(sending > Seconds<T>())) ++sent;
    }
  };
  const auto end_transfer = [&](size_t computed) {
    sending = Seconds<T>();
    ++sent;
    next_transfer(computed);
  };
  for (size_t i = 0; i < tasks.size(); ++i) {
    Seconds<T> computing = tasks[i].compute;
    next_transfer(i);
    while (computing > Seconds<T>() && sent < i) {
      const T pace =
          tasks[sent].communication / tasks[sent].communication_beside;
      const Seconds<T> until_computed = computing / speed;
      const Seconds<T> until_sent = sending / pace;
      if (until_computed <= until_sent) {
        now += until_computed;
        sending -= until_computed * pace;
        computing = Seconds<T>();
        if (!(sending > Seconds<T>())) end_transfer(i);  // both at once
      } else {
        now += until_sent;
        computing -= until_sent * speed;
        end_transfer(i);
      }
    }
    now += computing;
  }
  compute_end = now;
  // Nothing computes any more.
  next_transfer(tasks.size());
  while (sent < tasks.size()) {
    now += sending;
    end_transfer(tasks.size());
  }
  return {compute_end, now};
}

// Gradients that leave together, and the last layer they wait for.
struct GradientBucket {
  int64_t elements = 0;
  // 0 embeddings, 1..n blocks, n + 1 head, as in ParameterTensor.
  int64_t ready_after_layer = 0;
  int64_t tensors = 0;  // in the reverse of model order, from the last bucket's
};

// Buckets of PyTorch's DistributedDataParallel: tensors in the reverse of
// model order, a bucket closed as soon as it holds `capacity` or more, the
// first one at `first_capacity` so that sending starts early.
// Source: Li et al. 2020 (PyTorch Distributed), section 3.2.3.
inline std::vector<GradientBucket> BucketGradients(
    const std::vector<ParameterTensor>& tensors,
    int64_t bytes_per_element,
    Bytes<> capacity = MiB(25.0),
    Bytes<> first_capacity = MiB(1.0)) {
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    open.elements += tensor->elements;
    ++open.tensors;
    open.ready_after_layer = tensor->layer;
    const Bytes<> limit = buckets.empty() ? first_capacity : capacity;
    const Bytes<> held =
        Byte(static_cast<double>(open.elements * bytes_per_element));
    if (held >= limit) {
      buckets.push_back(open);
      open = {};
    }
  }
  if (open.elements > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace trainfare::model
