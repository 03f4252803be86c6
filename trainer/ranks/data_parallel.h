#pragma once

// Data parallelism: every rank computes on its own part of the batch, and the
// gradients are averaged while the backward pass still runs.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/device/device_clock.h"
#include "trainer/network/transformer.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rank_training.h"
#include "trainer/record/timeline.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct BucketOptions {
  // A bucket is closed by the gradient with which it reaches this size; the
  // first one is small so that sending starts early. PyTorch's values.
  int64_t bytes = 25 << 20;
  int64_t first_bytes = 1 << 20;
};

// Buckets over the parameters of one model, filled from autograd's hooks (Li et
// al. 2020, PyTorch Distributed, section 3.2). While it exists the gradients of
// the parameters are views into its buckets after EndBackward().
class DataParallel final : public RankTraining {
 public:
  DataParallel(Communicator& communicator,
               const std::vector<Parameter>& parameters,
               const BucketOptions& options);
  ~DataParallel() override;

  std::vector<Parameter> Updated() const override { return updated_; }
  void ShareParameters() override;
  // Backward passes that are not the last only accumulate (PyTorch's no_sync).
  void BeginBackward(const at::Tensor& loss, bool last) override;
  // Waits until gradients, loss and the wish to stop are those of all ranks.
  void EndBackward() override;
  std::optional<GradientTimes> TakeGradientTimes() override {
    return std::exchange(times_, std::nullopt);
  }

  double loss() const override { return loss_; }
  bool stop_asked() const override { return stop_asked_; }
  std::vector<int64_t> bucket_bytes() const override;
  std::vector<std::string> layers() const override;

 private:
  class Hook;
  struct Slice {
    at::Tensor parameter;
    at::Tensor mean;  // view into the bucket, in the parameter's shape
    size_t bucket = 0;
    size_t layer = 0;
    bool filled = false;
  };
  struct Bucket {
    at::Tensor flat;
    int64_t bytes = 0;  // of gradients
    size_t gradients = 0;
    size_t missing = 0;
    std::unique_ptr<Transfer> transfer;
    std::optional<size_t> ready_mark;  // of clock_
    std::optional<size_t> end_mark;    // the same, on a GPU
  };
  struct Layer {
    std::string name;
    size_t gradients = 0;
    size_t missing = 0;
    std::optional<size_t> ready_mark = std::nullopt;  // of clock_
  };

  void MakeBuckets(const std::vector<Parameter>& parameters,
                   const BucketOptions& options);
  void OnGradient(Slice& slice);
  void SendReady();
  void Send(size_t bucket);
  GradientTimes Times() const;
  void FillTail();
  double LossOfTail() const;  // mean over ranks

  std::vector<Parameter> updated_;
  std::vector<Slice> slices_;  // in the order of the buckets
  std::vector<Bucket> buckets_;
  std::vector<Layer> layers_;
  at::Tensor tail_;  // loss and wish to stop, behind the last gradient
  at::Tensor local_loss_;
  std::optional<GradientTimes> times_;
  bool stop_asked_ = false;
  double loss_ = 0;

  bool sending_ = false;
  size_t next_ = 0;  // bucket to send; all ranks send in the same order

  // Times the backward pass; its mark 0 is the start.
  DeviceClock clock_;
  size_t compute_end_mark_ = 0;
  // Between processors a transfer ends on a thread of its own. Shared with its
  // callback, which may outlive this object when a rank fails.
  std::shared_ptr<std::vector<double>> ends_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace trainfare::trainer
