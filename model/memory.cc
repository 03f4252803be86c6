#include "model/memory.h"

#include <array>
#include <utility>

#include "model/activations.h"
#include "model/internal/rank_memory.h"

namespace trainfare::model {

using internal::Moment;
using internal::RankMemory;

namespace {

// At the worst moment.
MemoryEstimate WorstOf(const RankMemory& rank, const Workload& w) {
  if (w.work == Work::kForward) return rank.ForwardPass().Estimate();
  const ActivationBytes activations = Activations(w, rank.blocks());
  const std::array moments = {rank.Loss(activations),
                              rank.OutputProduct(activations),
                              rank.ForwardEnd(activations),
                              rank.LastBlock(activations),
                              rank.LowestBlock(activations.lowest),
                              rank.BackwardEnd(),
                              rank.OptimizerStep()};
  const Moment* most = nullptr;
  Bytes<> held;
  const auto compare = [&](const Moment& moment) {
    const Bytes<> total = moment.total();
    if (most != nullptr && total <= held) return;
    most = &moment;
    held = total;
  };
  for (const Moment& moment : moments) compare(moment);
  MemoryEstimate worst = most->Estimate();
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
  MemoryEstimate estimate;
};

MemoryOfBatches::MemoryOfBatches() = default;
MemoryOfBatches::~MemoryOfBatches() = default;
MemoryOfBatches::MemoryOfBatches(MemoryOfBatches&&) noexcept = default;
MemoryOfBatches& MemoryOfBatches::operator=(MemoryOfBatches&&) noexcept =
    default;

MemoryEstimate MemoryOfBatches::Estimate(
    const Workload& w, const MemorySurroundings& surroundings) {
  if (last_) {
    const int64_t batch = std::exchange(last_->workload.batch, w.batch);
    if (last_->surroundings != surroundings || last_->workload != w) {
      last_.reset();
    } else if (batch == w.batch) {
      return last_->estimate;
    }
  }
  if (!last_) last_ = std::make_unique<Last>(w, surroundings);
  last_->estimate = WorstOf(last_->rank, last_->workload);
  return last_->estimate;
}

}  // namespace trainfare::model
