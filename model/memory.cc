#include "model/memory.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/activations.h"
#include "model/bisection.h"
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

std::optional<int64_t> LargestBatch(const Workload& workload,
                                    const MemorySurroundings& surroundings,
                                    Bytes<> capacity) {
  MemoryOfBatches memory;
  Workload trial = workload;
  const auto fits = [&](int64_t batch) {
    trial.batch = batch;
    return memory.Estimate(trial, surroundings).total() <= capacity;
  };
  if (!fits(1)) return std::nullopt;
  // The estimate never falls with the batch: double, then halve the gap.
  int64_t low = 1;
  int64_t high = 2;
  constexpr int64_t kFarTooLarge = int64_t{1} << 24;
  while (high < kFarTooLarge && fits(high)) {
    low = high;
    high *= 2;
  }
  return LargestThat(low, high, fits);
}

}  // namespace trainfare::model