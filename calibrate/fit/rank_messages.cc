#include "calibrate/fit/rank_messages.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "model/gradient_compression.h"
#include "model/trainable.h"

namespace trainfare::calibrate {
namespace {

// Buckets of these sizes, from the last tensor on.
std::vector<model::GradientBucket> BucketsOfSizes(
    const std::vector<model::ParameterTensor>& tensors,
    int64_t width,
    const std::vector<model::Bytes<>>& sizes) {
  std::vector<model::GradientBucket> buckets;
  size_t next = tensors.size();
  for (const model::Bytes<> size : sizes) {
    model::GradientBucket bucket;
    const bool last = buckets.size() + 1 == sizes.size();
    while (next > 0 && (last || model::Byte(static_cast<double>(
                                    bucket.elements * width)) < size)) {
      const model::ParameterTensor& tensor = tensors[--next];
      bucket.elements += tensor.elements;
      ++bucket.tensors;
      bucket.ready_after_layer = tensor.layer;
    }
    if (bucket.tensors > 0) buckets.push_back(bucket);
  }
  return buckets;
}

}  // namespace

RankMessages::RankMessages(const model::Workload& workload,
                           const std::vector<model::Bytes<>>& bucket_sizes)
    : layers_(workload.architecture.layers),
      frozen_layers_(workload.trainable.frozen_layers),
      by_unit_(model::ShardsOf(workload.parallel) > 1 ||
               model::Offloads(workload.parallel)) {
  if (by_unit_) {
    units_ = model::ShardUnitsOf(workload);
    return;
  }
  const model::Architecture& a = workload.architecture;
  messages_.resize(static_cast<size_t>(a.blocks() + 2));
  std::vector<model::ParameterTensor> tensors =
      model::TrainableTensorsOf(workload);
  if (a.expert_ranks > 1) {
    const auto rest = std::stable_partition(
        tensors.begin(), tensors.end(), [](const auto& tensor) {
          return tensor.of_routed_expert;
        });
    AddBuckets(workload, {tensors.begin(), rest}, {}, &Message::of_experts);
    tensors.erase(tensors.begin(), rest);
  }
  AddBuckets(workload, tensors, bucket_sizes, &Message::all);
}

void RankMessages::AddBuckets(
    const model::Workload& workload,
    const std::vector<model::ParameterTensor>& tensors,
    const std::vector<model::Bytes<>>& bucket_sizes,
    Transfers Message::*to) {
  const int64_t width = model::GradientWidth(workload);
  // Buckets fill from the last tensor on.
  size_t end = tensors.size();
  for (const model::GradientBucket& bucket :
       bucket_sizes.empty() ? model::BucketGradients(tensors, width)
                            : BucketsOfSizes(tensors, width, bucket_sizes)) {
    const auto layer = static_cast<size_t>(std::clamp<int64_t>(
        bucket.ready_after_layer, 0, std::ssize(messages_) - 1));
    const size_t begin = end - static_cast<size_t>(bucket.tensors);
    const model::SentGradients sent =
        model::SentOf(workload.compression,
                      std::span(tensors).subspan(begin, end - begin),
                      width);
    end = begin;
    Transfers& transfers = messages_[layer].*to;
    transfers.sent += model::Byte(static_cast<double>(sent.bytes));
    transfers.transfers += sent.transfers;
  }
}

}  // namespace trainfare::calibrate
