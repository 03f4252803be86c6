#pragma once

// What sending adds to a step of several ranks, at whatever scalar its times have:
// numbers, or numbers with slopes.

#include <vector>

#include "calibrate/fit/added_time.h"
#include "calibrate/fit/rank_messages.h"
#include "calibrate/fit/shared_passes.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/overlap.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// `T` the scalar of the surroundings, `A` of the times of one rank alone. Pieces
// of several kinds are recorded as one: all of them take `whole`.
template <class T, class A>
AddedTime<T> AddedByBuckets(
    const std::vector<model::BackwardPiece<A>>& of_one_alone,
    const model::Seconds<A>& whole,
    const RankSurroundings<T>& around,
    const model::GroupShape& of_experts) {
  std::vector<model::BackwardPiece<T>> pieces;
  pieces.reserve(of_one_alone.size());
  model::Seconds<A> recorded;
  for (const model::BackwardPiece<A>& piece : of_one_alone) {
    recorded += piece.compute;
  }
  const T scale = recorded > model::Seconds<A>()
                      ? around.slower * (whole / recorded)
                      : around.slower;
  model::Seconds<T> computed;
  for (const model::BackwardPiece<A>& piece : of_one_alone) {
    pieces.push_back({piece.compute * scale,
                      piece.sent,
                      piece.transfers,
                      piece.sent_of_experts,
                      piece.transfers_of_experts});
    computed += pieces.back().compute;
  }
  const model::OverlapTime<T> end = model::BackwardOverRanks(
      pieces, around.ranks, around.network, of_experts);
  AddedTime<T> added;
  added.slowed = end.compute_end - computed;
  added.exposed = end.exposed();
  added.all = end.end - computed;
  return added;
}

// By all messages of a step, which are the workload's. `of_experts`: ranks that
// have the same ones, where others have others.
template <class T, class A>
AddedTime<T> AddedBy(const model::Workload& workload,
                     const RankMessages& messages,
                     const hardware::StepTime<A>& alone,
                     const RankSurroundings<T>& around,
                     const model::GroupShape& of_experts = {}) {
  if (!messages.by_unit()) {
    return AddedByBuckets(
        messages.Pieces(alone.backward_units),
        alone.backward.total() / static_cast<double>(workload.accumulation),
        around,
        of_experts);
  }
  return SharedPasses<T, A>(workload, messages.units(), around, of_experts)
      .Over(alone);
}

}  // namespace trainfare::calibrate
