#pragma once

// What one rank holds, moment by moment of a step (docs/models/memory.md).

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/activations.h"
#include "model/memory_estimate.h"
#include "model/memory_term.h"
#include "model/parallel.h"
#include "model/sharding.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model::internal {

// What ranks that share the state hold besides their shares, moment by moment.
struct Gathered {
  int64_t at_loss = 0;  // parameters in whole
  int64_t at_block = 0;
  int64_t at_lowest = 0;
  int64_t at_end = 0;
  int64_t gradients = 0;  // of one unit, before they are summed
  int64_t most() const {
    return std::max({at_loss, at_block, at_lowest, at_end});
  }
  int64_t root_gradients = 0;
  int64_t buffers = 0;  // of the sums
  int64_t buffers_at_end = 0;
};

// What a moment holds, before it is known to be the worst one. Terms that are
// zero, or less by a rounded share, are none.
struct Moment {
  MemoryMoment moment = MemoryMoment::kForward;
  std::array<MemoryTerm, 14> terms = {};

  Bytes<> total() const {
    Bytes<> sum;
    for (const MemoryTerm& term : terms) {
      if (term.size.base() > 0) sum += term.size;
    }
    return sum;
  }
  MemoryEstimate Estimate() const {
    MemoryEstimate estimate;
    estimate.moment = moment;
    estimate.terms.reserve(terms.size());
    for (const MemoryTerm& term : terms) {
      if (term.size.base() > 0) estimate.terms.push_back(term);
    }
    return estimate;
  }
};

// What one rank holds, moment by moment. What is counted here once is of the
// rank, not of a batch: that of `w` may change afterwards.
class RankMemory {
 public:
  RankMemory(const Workload& w, const MemorySurroundings& surroundings);

  const BlockSorts& blocks() const { return blocks_; }

  Moment ForwardPass() const;
  // Of training, whose narrow copies of weights may not outlive it.
  Moment ForwardEnd(const ActivationBytes& activations) const;
  Moment Loss(const ActivationBytes& activations) const;
  // The output layer's gradient comes beside that of the logits.
  Moment OutputProduct(const ActivationBytes& activations) const;
  Moment LastBlock(const ActivationBytes& activations) const;
  Moment LowestBlock(const LowestBlockBytes& block) const;
  Moment BackwardEnd() const;
  Moment OptimizerStep() const;
  Bytes<> OfOtherStreams(const MemoryEstimate& moment) const;

 private:
  // Elements that this rank has of so many, where ranks divide them.
  int64_t Share(const DividedElements& elements, bool divided) const {
    return divided ? ShareOfRank(w_, elements) : elements.all;
  }
  // What comes and goes while a backward pass runs.
  struct Passing {
    bool in_block;  // whose gradients come and are summed
    int64_t gathered;
    int64_t copies;
    int64_t gradients;
    int64_t activations;
    int64_t logits;
    int64_t transients;
  };
  Moment DuringBackward(MemoryMoment moment, const Passing& passing) const;
  // Of a pass that keeps nothing.
  Moment ForwardOnly(int64_t gathered,
                     int64_t activations,
                     int64_t logits) const;
  int64_t ParameterBytesOf() const;
  // Narrow copies of fp32 weights at a moment when so many bytes of parameters
  // are gathered.
  enum class CopiesAt { kForwardEnd, kLoss, kLastBlock, kLowestBlock };
  int64_t WeightCopyBytes(CopiesAt at, int64_t gathered) const;
  // All activations are held.
  Moment BetweenPasses(MemoryMoment moment,
                       CopiesAt at,
                       int64_t logits,
                       int64_t gradients,
                       const ActivationBytes& activations) const;
  int64_t GradientBytesOf() const;
  int64_t SummedGradients() const;
  int64_t StandingGradients() const;
  // Of the output layer, where it trains: elements; bytes as its product makes
  // them; those of them that stand in whole to the end, of ranks that divide
  // gradients. Of a table that tokens are looked up in, too, it stands to the
  // end, even where tensors are updated in the pass backward.
  int64_t OutputElements() const;
  int64_t OutputGradient() const;
  int64_t OutputGradientInRoot() const;
  int64_t TiedOutputGradient() const;
  int64_t GradientsAtLoss() const;
  int64_t GradientsAtLastBlock() const;
  int64_t WholeTables() const;
  int64_t GradientsAboveLowest() const;
  // Of so many of the parameters that train.
  int64_t GradientBytesOfSome(int64_t parameters) const;
  // What is sent to other ranks, and what of it stands to the end.
  int64_t BucketBytes() const;
  int64_t LastBucketBytes() const {
    const bool at_end = shares_ && !AddsToSums() && !SumsInProducts();
    return at_end ? gathered_.buffers_at_end : BucketBytes();
  }
  // Whether gradients are sums in fp32 as products write them, which are sent
  // where they stand.
  bool SumsInProducts() const;
  // Whether a pass has narrow gradients of all beside the sums they are added
  // to, in the buckets in which ranks that hold all parameters send them.
  bool AddsToSums() const;
  int64_t UnscaledBytes() const;
  int64_t WidenedBytes() const;

  const Workload& w_;
  const MemorySurroundings& surroundings_;
  bool shares_;   // the state is divided over ranks, or with the host
  bool divided_;  // and so are the parameters
  bool updates_;  // here, not on the host
  BlockSorts blocks_;
  Gathered gathered_;
  // Elements: of all parameters, adapters included; of these, those of matrices
  // beside adapters that are kept in few bits; those that train, and of them
  // those that this rank updates.
  int64_t elements_;
  int64_t quantised_;
  int64_t trained_;
  // Of all, and of what trains, where ranks have other experts each.
  int64_t experts_;
  int64_t trained_experts_;
  int64_t updated_;
  // Of matrices in blocks, and outside them, that are copied narrow.
  int64_t copied_in_blocks_;
  int64_t copied_outside_;
  // Bytes.
  int64_t parameter_bytes_;
  int64_t gradient_bytes_;
  int64_t gradients_above_lowest_;
  int64_t master_bytes_;
  int64_t state_bytes_;
  int64_t temporaries_;
};

}  // namespace trainfare::model::internal
