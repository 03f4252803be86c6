#include "trainer/training/feed.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace trainfare::trainer {
namespace {

// Micro-batches within which bucketed padding sorts by length: as many as
// Transformers' group_by_length takes.
constexpr size_t kBucketBatches = 50;

// Target ids of examples [first, last) of `order`, kNoLabel behind them.
at::Tensor TargetLabels(const std::vector<Example>& examples,
                        const std::vector<size_t>& order,
                        size_t first,
                        size_t last,
                        int64_t length) {
  at::Tensor labels = at::full(
      {static_cast<int64_t>(last - first), length}, kNoLabel, at::kLong);
  for (size_t i = first; i < last; ++i) {
    const std::vector<int64_t>& ids = examples[order[i]].target_ids;
    std::copy(ids.begin(),
              ids.end(),
              labels.mutable_data_ptr<int64_t>() +
                  static_cast<int64_t>(i - first) * length);
  }
  return labels;
}

// To a GPU through pinned memory, so that the copy is a request in its queue
// and not a wait for it.
Batch ToDevice(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  const c10::DeviceGuard guard(device);  // of this thread too
  for (at::Tensor* tensor : {&batch.input_ids,
                             &batch.target_ids,
                             &batch.attention_mask,
                             &batch.labels,
                             &batch.start_positions,
                             &batch.end_positions}) {
    if (!tensor->defined()) continue;
    *tensor = tensor->pin_memory().to(device, /*non_blocking=*/true);
  }
  return batch;
}

// Fisher-Yates on the raw generator: the same order everywhere.
template <class Value>
void Shuffle(std::vector<Value>& values, std::mt19937_64& random) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random() % i]);
  }
}

}  // namespace

Batch MakeBatch(const std::vector<Example>& examples,
                const std::vector<size_t>& order,
                size_t first,
                size_t last,
                const Lengths& lengths,
                const Transformer& transformer) {
  const int64_t length = lengths.source;
  const auto count = static_cast<int64_t>(last - first);
  Batch batch;
  batch.input_ids =
      at::full({count, length}, transformer.options().padding_id, at::kLong);
  at::Tensor mask = at::zeros({count, length}, at::kBool);
  at::Tensor labels = at::empty({count}, at::kLong);
  at::Tensor starts = at::empty({count}, at::kLong);
  at::Tensor ends = at::empty({count}, at::kLong);
  bool padded = false;
  for (size_t i = first; i < last; ++i) {
    const Example& example = examples[order[i]];
    const auto row = static_cast<int64_t>(i - first);
    const auto tokens = static_cast<int64_t>(example.ids.size());
    std::copy(example.ids.begin(),
              example.ids.end(),
              batch.input_ids.mutable_data_ptr<int64_t>() + row * length);
    std::fill_n(mask.mutable_data_ptr<bool>() + row * length, tokens, true);
    labels.mutable_data_ptr<int64_t>()[row] = example.label;
    starts.mutable_data_ptr<int64_t>()[row] = example.start;
    ends.mutable_data_ptr<int64_t>()[row] = example.end;
    padded = padded || tokens < length;
  }
  const model::Family family = transformer.architecture().family;
  if (family == model::Family::kEncoderDecoder) {
    const at::Tensor targets =
        TargetLabels(examples, order, first, last, lengths.target);
    batch.target_ids = ShiftRight(targets,
                                  transformer.options().decoder_start_id,
                                  transformer.options().padding_id);
    batch.labels = targets;
  } else if (family == model::Family::kDecoder) {
    batch.labels = NextTokens(batch.input_ids, mask);
  }
  if (padded) batch.attention_mask = mask;
  if (family != model::Family::kEncoder) {
    return ToDevice(std::move(batch), transformer.device());
  }
  if (transformer.architecture().head == model::Head::kQuestionAnswering) {
    batch.start_positions = starts;
    batch.end_positions = ends;
  } else {
    batch.labels = labels;
  }
  return ToDevice(std::move(batch), transformer.device());
}

std::vector<size_t> InOrder(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

Lengths PaddedLengths(const std::vector<Example>& examples,
                      const std::vector<size_t>& order,
                      size_t first,
                      size_t last,
                      const TrainOptions& options) {
  if (options.padding == Padding::kStatic) {
    return {options.workload.sequence_length, options.workload.sequence_length};
  }
  size_t source = 1;
  size_t target = 1;
  for (size_t i = first; i < last; ++i) {
    source = std::max(source, examples[order[i]].ids.size());
    target = std::max(target, examples[order[i]].target_ids.size());
  }
  return {static_cast<int64_t>(source), static_cast<int64_t>(target)};
}

Feed::Feed(const std::vector<Example>& examples,
           const TrainOptions& options,
           const Share& share)
    : examples_(examples), options_(options), share_(share) {
  Seek(0, 0);
}

void Feed::Seek(int64_t epoch, int64_t position) {
  if (next_.valid()) next_.get();  // made in vain
  epoch_ = epoch;
  position_ = position;
  Order();
}

Batch Feed::Next(const Transformer& transformer) {
  if (position_ >= batches()) Seek(epoch_ + 1, 0);
  Batch batch = next_.valid() ? next_.get() : Make(position_, transformer);
  ++position_;
  // A GPU computes while the host pads what comes next; a CPU would have to
  // stop for it.
  if (!transformer.device().is_cpu() && position_ < batches()) {
    next_ = std::async(std::launch::async,
                       [this, &transformer, position = position_] {
                         return Make(position, transformer);
                       });
  }
  return batch;
}

Batch Feed::Make(int64_t position, const Transformer& transformer) const {
  const auto [first, last] = ranges_[static_cast<size_t>(position)];
  auto [own_first, own_last] = share_.Of(first, last);
  const model::Family family = transformer.architecture().family;
  const double own = LabelsIn(own_first, own_last, family);
  // Fewer examples than ranks: one that counts nothing, so that the ranks
  // without any stay in step.
  if (own_first == own_last) {
    own_first = first;
    own_last = first + 1;
  }
  Batch batch =
      MakeBatch(examples_,
                order_,
                own_first,
                own_last,
                PaddedLengths(examples_, order_, own_first, own_last, options_),
                transformer);
  batch.weight = own * static_cast<double>(share_.world_size) /
                 LabelsIn(first, last, family);
  return batch;
}

double Feed::LabelsIn(size_t first, size_t last, model::Family family) const {
  if (family == model::Family::kEncoder) {
    return static_cast<double>(last - first);
  }
  size_t labels = 0;
  for (size_t i = first; i < last; ++i) {
    const Example& example = examples_[order_[i]];
    labels += family == model::Family::kDecoder ? example.ids.size() - 1
                                                : example.target_ids.size();
  }
  return static_cast<double>(labels);
}

void Feed::Order() {
  std::mt19937_64 random(options_.seed +
                         0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(epoch_));
  order_ = InOrder(examples_.size());
  Shuffle(order_, random);
  const size_t batch =
      static_cast<size_t>(options_.workload.batch) * share_.world_size;
  if (options_.padding == Padding::kBucketed) {
    for (size_t i = 0; i < order_.size(); i += kBucketBatches * batch) {
      const size_t end = std::min(i + kBucketBatches * batch, order_.size());
      std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(i),
                       order_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](size_t a, size_t b) {
                         return examples_[a].ids.size() >
                                examples_[b].ids.size();
                       });
    }
  }
  ranges_.clear();
  for (size_t i = 0; i < order_.size();) {
    const size_t end = options_.batch_tokens > 0
                           ? EndOfTokens(i)
                           : std::min(i + batch, order_.size());
    ranges_.emplace_back(i, end);
    i = end;
  }
  if (options_.padding == Padding::kBucketed) Shuffle(ranges_, random);
}

size_t Feed::EndOfTokens(size_t first) const {
  size_t end = first + 1;
  for (; end < order_.size(); ++end) {
    const Lengths lengths =
        PaddedLengths(examples_, order_, first, end + 1, options_);
    const auto rows = static_cast<int64_t>((end + share_.world_size - first) /
                                           share_.world_size);
    if (rows * std::max(lengths.source, lengths.target) >
        options_.batch_tokens) {
      break;
    }
  }
  return end;
}

}  // namespace trainfare::trainer
