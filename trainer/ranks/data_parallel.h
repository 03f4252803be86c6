#pragma once

// Data parallelism: every rank computes on its own part of the batch, and the
// gradients are averaged while the backward pass still runs.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/device/device_clock.h"
#include "trainer/network/transformer.h"
#include "trainer/ranks/communicator.h"
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
// the parameters are views into its buckets after Finish().
class DataParallel {
 public:
  DataParallel(Communicator& communicator,
               const std::vector<Parameter>& parameters,
               const BucketOptions& options);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Rank 0's parameters to all ranks.
  void BroadcastParameters();

  // The next backward pass is the last of its step: its gradients, with those
  // accumulated before, are sent. Backward passes without Begin() only
  // accumulate (PyTorch's no_sync). `loss` is this rank's of the whole step.
  void Begin(const at::Tensor& loss);
  // Behind the backward pass: waits until gradients, loss and the wish to stop
  // are those of all ranks.
  GradientTimes Finish();

  double loss() const { return loss_; }  // mean over ranks
  // Travels with the next step's gradients, so that all ranks stop behind the
  // same step.
  void AskToStop(bool stop) { ask_to_stop_ = stop; }
  bool stop_asked() const { return stop_asked_; }

  Communicator& communicator() { return communicator_; }
  std::vector<int64_t> bucket_bytes() const;
  // What layer_ready speaks of: "bert.encoder.layer.3", "bert.embeddings".
  std::vector<std::string> layers() const;

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

  Communicator& communicator_;
  std::vector<Slice> slices_;  // in the order of the buckets
  std::vector<Bucket> buckets_;
  std::vector<Layer> layers_;
  at::Tensor tail_;  // loss and wish to stop, behind the last gradient
  at::Tensor local_loss_;
  bool ask_to_stop_ = false;
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
