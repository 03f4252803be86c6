#pragma once

// Examples in micro-batches: which, in which order, padded to which length.

#include <cstddef>
#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "trainer/data/data.h"
#include "trainer/network/transformer.h"
#include "trainer/ranks/communicator.h"
#include "trainer/training/options.h"

namespace trainfare::trainer {

// The lengths of a micro-batch, padding included.
struct Lengths {
  int64_t source = 0;
  int64_t target = 0;  // of a model of two sides
};

std::vector<size_t> InOrder(size_t count);

// What to pad examples [first, last) of `order` to.
Lengths PaddedLengths(const std::vector<Example>& examples,
                      const std::vector<size_t>& order,
                      size_t first,
                      size_t last,
                      const TrainOptions& options);

// Examples [first, last) of `order`, padded, on the model's device.
Batch MakeBatch(const std::vector<Example>& examples,
                const std::vector<size_t>& order,
                size_t first,
                size_t last,
                const Lengths& lengths,
                const Transformer& transformer);

// Which of how many equal parts of the work is this process's.
struct Share {
  size_t rank = 0;
  size_t world_size = 1;

  explicit Share(const Communicator* ranks) {
    if (ranks == nullptr) return;
    rank = static_cast<size_t>(ranks->rank());
    world_size = static_cast<size_t>(ranks->world_size());
  }
  bool first() const { return rank == 0; }
  // This rank's part of [first, last), in parts that differ by one at most.
  std::pair<size_t, size_t> Of(size_t first, size_t last) const {
    const size_t count = last - first;
    return {first + count * rank / world_size,
            first + count * (rank + 1) / world_size};
  }
};

// Micro-batches of an endless walk over the examples, in an order that seed and
// epoch decide; of each, this rank's part. The last of an epoch may be smaller.
class Feed {
 public:
  // Examples and options must outlive it.
  Feed(const std::vector<Example>& examples,
       const TrainOptions& options,
       const Share& share);

  // Behind `position` micro-batches of an epoch.
  void Seek(int64_t epoch, int64_t position);
  int64_t epoch() const { return epoch_; }
  int64_t position() const { return position_; }

  Batch Next(const Transformer& transformer);
  // The batches of this epoch: with a batch in tokens another may have others.
  int64_t batches() const { return static_cast<int64_t>(ranges_.size()); }

 private:
  // Number `position` of the epoch.
  Batch Make(int64_t position, const Transformer& transformer) const;
  // Labels that the loss of examples [first, last) of the order is the mean of.
  double LabelsIn(size_t first, size_t last, model::Family family) const;
  void Order();
  // Behind the last example that fits beside `first` into the tokens of every
  // rank's part of a micro-batch, padding included.
  size_t EndOfTokens(size_t first) const;

  const std::vector<Example>& examples_;
  const TrainOptions& options_;
  Share share_;
  std::vector<size_t> order_;
  std::vector<std::pair<size_t, size_t>> ranges_;  // of a micro-batch
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  std::future<Batch> next_;  // number position_, in the making
};

}  // namespace trainfare::trainer
