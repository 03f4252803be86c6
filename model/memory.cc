#include "model/memory.h"

#include <algorithm>
#include <array>

#include "model/activations.h"
#include "model/internal/rank_memory.h"

namespace trainfare::model {

using internal::Moment;
using internal::RankMemory;

namespace {

// At the worst moment.
MemoryEstimate WorstOf(const RankMemory& rank, const Workload& w) {
  if (w.work == Work::kForward) return rank.ForwardPass().Estimate();
  const ActivationBytes activations = Activations(w);
  const std::array moments = {rank.Loss(activations),
                              rank.LastBlock(activations),
                              rank.LowestBlock(activations.lowest),
                              rank.BackwardEnd(),
                              rank.OptimizerStep()};
  MemoryEstimate worst = std::max_element(moments.begin(),
                                          moments.end(),
                                          [](const Moment& x, const Moment& y) {
                                            return x.total() < y.total();
                                          })
                             ->Estimate();
  worst.of_other_streams = rank.OfOtherStreams(worst);
  return worst;
}

}  // namespace

MemoryEstimate EstimateMemory(const Workload& w,
                              const MemorySurroundings& surroundings) {
  return WorstOf(RankMemory(w, surroundings), w);
}

struct MemoryOfBatches::Last {
  Last(const Workload& of, const MemorySurroundings& in)
      : workload(of), surroundings(in), rank(workload, surroundings) {}
  Last(const Last&) = delete;  // `rank` refers to the others
  Last& operator=(const Last&) = delete;

  Workload workload;
  MemorySurroundings surroundings;
  RankMemory rank;
};

MemoryOfBatches::MemoryOfBatches() = default;
MemoryOfBatches::~MemoryOfBatches() = default;
MemoryOfBatches::MemoryOfBatches(MemoryOfBatches&&) noexcept = default;
MemoryOfBatches& MemoryOfBatches::operator=(MemoryOfBatches&&) noexcept =
    default;

MemoryEstimate MemoryOfBatches::Estimate(
    const Workload& w, const MemorySurroundings& surroundings) {
  if (last_) last_->workload.batch = w.batch;
  if (!last_ || last_->surroundings != surroundings || last_->workload != w) {
    last_ = std::make_unique<Last>(w, surroundings);
  }
  return WorstOf(last_->rank, last_->workload);
}

}  // namespace trainfare::model
