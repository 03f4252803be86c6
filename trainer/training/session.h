#pragma once

// One model in training: the step, and what it cost.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/stack_rules.h"
#include "model/workload.h"
#include "trainer/device/device_clock.h"
#include "trainer/network/transformer.h"
#include "trainer/optimizer/loss_scaler.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/ranks/data_parallel.h"
#include "trainer/record/record.h"
#include "trainer/record/timeline.h"

namespace trainfare::trainer {

// Throws InputError where this trainer cannot run a precision on the device.
void CheckPrecision(model::Precision precision, at::Device device);

// Throws std::runtime_error unless `result` was computed on the device that was
// asked for: a run that falls back to another one must not pass as a
// measurement.
void RequireRanOn(at::Device asked, const at::Tensor& result);

class Session {
 public:
  // Throws InputError where this trainer cannot run the precision or optimizer.
  Session(std::unique_ptr<Transformer> transformer,
          model::Precision precision,
          const OptimizerOptions& optimizer);

  // One optimizer step over the micro-batches that `next_batch(i)` gives for i
  // in [0, accumulation). Without ranks it throws Interrupted between two parts
  // of the model, with all but gradients as before the step.
  template <class NextBatch>
  StepTimes Step(int64_t accumulation, const NextBatch& next_batch) {
    BeginStep();
    for (int64_t i = 0; i < accumulation; ++i) {
      ForwardBackward(next_batch(i), accumulation, i + 1 == accumulation);
    }
    Update();
    return EndStep();
  }

  // From the next step on: also when each part of the model begins and ends.
  void set_time_parts(bool wanted) { time_parts_ = wanted; }
  bool time_parts() const { return time_parts_; }
  // The parts of the model, in the order of the forward pass; known after a
  // step whose parts were timed.
  const std::vector<std::string>& parts() const { return parts_; }

  // From now on gradients are averaged over the ranks, in these buckets, or
  // state is divided as `parallel` says; the parameters are rank 0's.
  void Join(Communicator& communicator,
            const BucketOptions& buckets,
            const model::Parallel& parallel = {});
  RankTraining* ranks() const { return ranks_.get(); }  // null: alone
  // As if new, with weights of this seed.
  void Reset(uint64_t seed);
  // nullopt where no launcher made this process a rank.
  std::optional<RankDescription> DescribeRanks() const;
  // What is known once its steps are done.
  void AddOutcome(StepRecord& record) const;

  // Logits without dropout or gradients.
  at::Tensor Predict(const Batch& batch) const;

  Transformer& transformer() { return *transformer_; }
  Optimizer& optimizer() { return *optimizer_; }
  // Kernels of one optimizer step, known after the second; absent where one
  // operator is several launches (LibTorch's multi-tensor kernels on a GPU).
  std::optional<int64_t> optimizer_launches() const {
    return optimizer_launches_;
  }
  // The loss scale of fp16: nullopt in other precisions.
  std::optional<LossScale> loss_scale() const {
    return scaler_ ? std::optional<LossScale>(scaler_->state()) : std::nullopt;
  }
  void set_loss_scale(const LossScale& scale) { scaler_->Restore(scale); }
  // Gives the model back, without its optimizer state.
  std::unique_ptr<Transformer> Release() { return std::move(transformer_); }

 private:
  // Marks of the clock around the passes of one micro-batch.
  struct PassMarks {
    size_t begin = 0;
    size_t forward_end = 0;
    size_t backward_end = 0;
    std::vector<size_t> part_ends;  // in the forward pass, but for the last
    // When the gradient of each of these outputs was complete, and so the parts
    // behind it were done; absent where nothing asked for it.
    std::vector<std::optional<size_t>> gradients;
  };

  void BeginStep();
  Output Forward(const Batch& batch, bool training, const PartEnd& end) const;
  void ForwardBackward(const Batch& batch, int64_t accumulation, bool last);
  PartEnd MarkParts(size_t pass);
  PartEnd EndsOfParts(size_t pass);
  // False where a gradient is not finite.
  bool CheckGradients();
  void Update();
  StepTimes EndStep();
  StepTimeline Timeline() const;
  bool LaunchesCount() const;
  bool NarrowWeights() const {
    return transformer_->options().type != at::kFloat;
  }

  std::unique_ptr<Transformer> transformer_;
  model::Precision precision_;
  model::Optimizer optimizer_kind_;
  std::optional<int64_t> optimizer_launches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<RankTraining> ranks_;
  std::optional<LossScaler> scaler_;  // of fp16

  // Times the step in hand.
  DeviceClock clock_;
  double step_begin_s_ = 0;
  std::vector<at::Tensor> losses_;  // read at its end, reading waits for a GPU
  std::vector<PassMarks> passes_;
  size_t optimizer_begin_ = 0;
  size_t optimizer_end_ = 0;
  bool time_parts_ = false;
  std::vector<std::string> parts_;
};

}  // namespace trainfare::trainer
