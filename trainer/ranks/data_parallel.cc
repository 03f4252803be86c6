#include "trainer/ranks/data_parallel.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

// Behind the last gradient: the wish to stop, then the loss. In fp32 the sum of
// all ranks' shares; a narrow type would round it, so there each rank writes
// its own loss to elements of its own, in three parts that add up to it.
constexpr int64_t kParts = 3;

int64_t TailElements(at::ScalarType type, int world_size) {
  return type == at::kFloat ? 2 : 1 + kParts * world_size;
}

at::Device DeviceOf(const std::vector<Parameter>& parameters) {
  ENSURE(!parameters.empty(), "a model has parameters");
  return parameters.front().value.device();
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

class DataParallel::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(DataParallel& owner, size_t slice) : owner_(owner), slice_(slice) {}
  void operator()(const at::Tensor&) override {
    owner_.OnGradient(owner_.slices_[slice_]);
  }

 private:
  DataParallel& owner_;
  size_t slice_;
};

DataParallel::DataParallel(Communicator& communicator,
                           const std::vector<Parameter>& parameters,
                           const BucketOptions& options)
    : RankTraining(communicator), clock_(DeviceOf(parameters)) {
  for (const Parameter& one : parameters) {
    if (one.value.requires_grad()) updated_.push_back(one);
  }
  MakeBuckets(parameters, options);
  for (size_t i = 0; i < slices_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        slices_[i].parameter, std::make_unique<Hook>(*this, i));
  }
}

DataParallel::~DataParallel() {
  for (const Slice& slice : slices_) {
    torch::autograd::impl::set_post_acc_grad_hooks(slice.parameter, nullptr);
  }
}

void DataParallel::MakeBuckets(const std::vector<Parameter>& parameters,
                               const BucketOptions& options) {
  // Backward meets the parameters roughly from the last to the first.
  std::vector<std::vector<const Parameter*>> lists(1);
  int64_t held = 0;
  for (auto one = parameters.rbegin(); one != parameters.rend(); ++one) {
    if (!one->value.requires_grad()) continue;
    const int64_t limit =
        lists.size() == 1 ? options.first_bytes : options.bytes;
    const bool full = held >= limit;
    const bool other_type =
        !lists.back().empty() &&
        lists.back().front()->value.scalar_type() != one->value.scalar_type();
    if (full || other_type) {
      lists.emplace_back();
      held = 0;
    }
    lists.back().push_back(&*one);
    held += static_cast<int64_t>(one->value.nbytes());
  }
  for (const auto& list : lists) {
    ENSURE(!list.empty(), "a model has gradients");
    int64_t elements = 0;
    for (const Parameter* one : list) elements += one->value.numel();
    Bucket bucket;
    bucket.gradients = list.size();
    bucket.bytes =
        elements * static_cast<int64_t>(list.front()->value.element_size());
    const bool last = &list == &lists.back();
    const at::NoGradGuard no_grad;
    const at::Tensor& first = list.front()->value;
    const int64_t tail =
        last ? TailElements(first.scalar_type(), communicator().world_size())
             : 0;
    bucket.flat =
        at::zeros({elements + tail}, first.options().requires_grad(false));
    if (last) tail_ = bucket.flat.narrow(0, elements, tail);
    int64_t offset = 0;
    for (const Parameter* one : list) {
      const std::string name = LayerOf(one->name).name;
      auto found = std::find_if(
          layers_.begin(), layers_.end(), [&name](const Layer& layer) {
            return layer.name == name;
          });
      if (found == layers_.end()) found = layers_.insert(found, Layer{name});
      ++found->gradients;
      Slice slice;
      slice.parameter = one->value;
      slice.mean = bucket.flat.narrow(0, offset, one->value.numel())
                       .view(one->value.sizes());
      slice.bucket = buckets_.size();
      slice.layer = static_cast<size_t>(found - layers_.begin());
      slices_.push_back(std::move(slice));
      offset += one->value.numel();
    }
    buckets_.push_back(std::move(bucket));
  }
}

std::vector<int64_t> DataParallel::bucket_bytes() const {
  std::vector<int64_t> bytes;
  for (const Bucket& bucket : buckets_) bytes.push_back(bucket.bytes);
  return bytes;
}

std::vector<std::string> DataParallel::layers() const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) names.push_back(layer.name);
  return names;
}

void DataParallel::ShareParameters() {
  if (communicator().world_size() == 1) return;
  // Through the buckets: a few large messages instead of hundreds.
  const at::NoGradGuard no_grad;
  for (const Slice& slice : slices_) slice.mean.copy_(slice.parameter);
  for (const Bucket& bucket : buckets_) communicator().Broadcast(bucket.flat);
  for (const Slice& slice : slices_) slice.parameter.copy_(slice.mean);
}

void DataParallel::BeginBackward(const at::Tensor& loss, bool last) {
  if (!last) return;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.gradients;
    bucket.ready_mark.reset();
    bucket.end_mark.reset();
  }
  for (Layer& layer : layers_) {
    layer.missing = layer.gradients;
    layer.ready_mark.reset();
  }
  for (Slice& slice : slices_) slice.filled = false;
  ends_ = std::make_shared<std::vector<double>>(buckets_.size(), 0.0);
  local_loss_ = loss.detach();
  next_ = 0;
  sending_ = true;
  start_ = std::chrono::steady_clock::now();
  clock_.Clear();
  clock_.Mark();
}

void DataParallel::OnGradient(Slice& slice) {
  if (!sending_) return;
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = slice.parameter.mutable_grad();
  // Divided here, on the way into the bucket, as Gloo has no mean.
  at::mul_out(slice.mean,
              gradient,
              at::scalar_tensor(1.0 / communicator().world_size(),
                                gradient.options().device(at::kCPU)));
  gradient = slice.mean;
  slice.filled = true;
  Layer& layer = layers_[slice.layer];
  if (--layer.missing == 0) layer.ready_mark = clock_.Mark();
  Bucket& bucket = buckets_[slice.bucket];
  if (--bucket.missing == 0) SendReady();
}

void DataParallel::SendReady() {
  for (Bucket& bucket : buckets_) {
    if (bucket.missing == 0 && !bucket.ready_mark) {
      bucket.ready_mark = clock_.Mark();
    }
  }
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) {
    Send(next_++);
  }
}

void DataParallel::Send(size_t index) {
  Bucket& bucket = buckets_[index];
  if (index + 1 == buckets_.size()) {
    FillTail();
  }
  if (communicator().world_size() == 1) return;
  std::function<void()> done;
  if (bucket.flat.is_cpu()) {
    done = [ends = ends_, start = start_, index] {
      (*ends)[index] = SecondsSince(start);
    };
  }
  bucket.transfer = communicator().AllReduce(bucket.flat, std::move(done));
  if (!bucket.flat.is_cpu()) {
    bucket.end_mark = clock_.MarkEndOf([&] { bucket.transfer->Wait(); });
  }
}

void DataParallel::FillTail() {
  const at::NoGradGuard no_grad;
  tail_.zero_();
  tail_[0].fill_(asked_to_stop() ? 1.0 : 0.0);
  if (tail_.scalar_type() == at::kFloat) {
    tail_[1].copy_(local_loss_ * (1.0 / communicator().world_size()));
    return;
  }
  at::Tensor rest = local_loss_.to(at::kFloat);
  for (int64_t part = 0; part < kParts; ++part) {
    const at::Tensor slot = tail_[1 + kParts * communicator().rank() + part];
    slot.copy_(rest);
    rest = rest - slot.to(at::kFloat);
  }
}

double DataParallel::LossOfTail() const {
  if (tail_.scalar_type() == at::kFloat) return tail_[1].item<double>();
  return tail_.narrow(0, 1, tail_.numel() - 1)
             .to(at::kDouble)
             .sum()
             .item<double>() /
         communicator().world_size();
}

void DataParallel::EndBackward() {
  if (!sending_) return;
  compute_end_mark_ = clock_.Mark();
  // Parameters that this loss does not reach: nothing to add to the mean, and
  // no gradient afterwards, as without other ranks.
  for (Slice& slice : slices_) {
    if (slice.filled) continue;
    const at::NoGradGuard no_grad;
    slice.mean.zero_();
    --buckets_[slice.bucket].missing;
  }
  SendReady();
  for (Bucket& bucket : buckets_) {
    if (bucket.transfer) bucket.transfer->Wait();
    bucket.transfer.reset();
  }
  sending_ = false;
  loss_ = LossOfTail();
  stop_asked_ = tail_[0].item<double>() > 0.0;
  local_loss_.reset();
  clock_.Wait();
  times_ = Times();
}

GradientTimes DataParallel::Times() const {
  const auto at = [this](size_t mark) {
    return clock_.SecondsBetween(0, mark);
  };
  GradientTimes times;
  times.compute_end = at(compute_end_mark_);
  for (const Layer& layer : layers_) {
    // No more is known of a layer that the loss does not reach whole.
    times.layer_ready.push_back(
        at(layer.ready_mark.value_or(compute_end_mark_)));
  }
  double previous_end = 0.0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    const double ready = at(bucket.ready_mark.value());
    // The buckets go in turn: one worker of Gloo, or NCCL's stream.
    const double start = std::max(ready, previous_end);
    double end = start;
    if (bucket.end_mark) {
      end = at(*bucket.end_mark);
    } else if (communicator().world_size() > 1) {
      end = (*ends_)[i];
    }
    times.bucket_ready.push_back(ready);
    times.bucket_start.push_back(start);
    times.bucket_end.push_back(end);
    previous_end = end;
  }
  return times;
}

}  // namespace trainfare::trainer
