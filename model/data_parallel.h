#pragma once

// Backward pass of one of several ranks: its computation, and the all-reduces
// of its gradients beside it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/collective.h"
#include "model/overlap.h"
#include "model/units.h"

namespace trainfare::model {

// What joins the ranks, and what computing and sending cost each other.
template <class T>
struct RankNetwork {
  RingLevel<T> alone;   // nothing computes
  RingLevel<T> beside;  // while the ranks compute
  T speed = T(1.0);     // of computation beside a transfer, 0 < v <= 1
  // Ranks on several hosts, as many on each: what one rank gets of the network
  // while all of its host send.
  int64_t hosts = 1;
  RingLevel<T> across = {};
  // Times over those of half an all-reduce.
  double gather = 1.0;
  double reduce_scatter = 1.0;
};

// A piece of the backward pass, and the gradients that leave after it.
template <class T>
struct BackwardPiece {
  Seconds<T> compute;     // since the piece before it
  Bytes<> sent;           // by each rank
  int64_t transfers = 0;  // that carry them; 0: nothing leaves
  // The same of experts that other ranks have others of.
  Bytes<> sent_of_experts = {};
  int64_t transfers_of_experts = 0;
};

// Time of so many all-reduces one after the other: their bytes cost what those of
// one do, and each has the latency of a ring.
template <class T>
Seconds<T> AllReducesTime(const GroupShape& ranks,
                          Bytes<> sent,
                          int64_t transfers,
                          const RingLevel<T>& ring,
                          const RingLevel<T>& across) {
  if (transfers == 0) return Seconds<T>();
  const auto reduced = [&](Bytes<> size) {
    return AllReduceTime<T>(ranks.in_host, ranks.hosts, size, ring, across);
  };
  return reduced(sent) +
         static_cast<double>(transfers - 1) * reduced(Bytes<>());
}

// The time of a piece's, over `ranks`.
template <class T>
Seconds<T> SendingTime(int64_t ranks,
                       const BackwardPiece<T>& piece,
                       const RingLevel<T>& ring,
                       int64_t hosts = 1,
                       const RingLevel<T>& across = {}) {
  return AllReducesTime<T>(
      {ranks / hosts, hosts}, piece.sent, piece.transfers, ring, across);
}

// End of a backward pass over `ranks` ranks, of which `of_experts` have the same
// experts: OverlapContended with the ring's time of every bucket. Computation
// never makes a transfer faster.
// Worked by hand: docs/models/data_parallel.md. Check:
// tests/model/data_parallel_test.cc, tests/calibrate/fit/data_parallel_test.cc.
template <class T>
OverlapTime<T> BackwardOverRanks(const std::vector<BackwardPiece<T>>& pieces,
                                 int64_t ranks,
                                 const RankNetwork<T>& network,
                                 const GroupShape& of_experts = {}) {
  std::vector<ContendedTask<T>> tasks;
  tasks.reserve(pieces.size());
  for (const BackwardPiece<T>& piece : pieces) {
    const auto sent_over = [&](const RingLevel<T>& ring) {
      return SendingTime(ranks, piece, ring, network.hosts, network.across) +
             AllReducesTime<T>(of_experts,
                               piece.sent_of_experts,
                               piece.transfers_of_experts,
                               ring,
                               network.across);
    };
    const Seconds<T> alone = sent_over(network.alone);
    const Seconds<T> beside = sent_over(network.beside);
    tasks.push_back({piece.compute, alone, std::max(beside, alone)});
  }
  return OverlapContended(tasks, network.speed);
}

}  // namespace trainfare::model
