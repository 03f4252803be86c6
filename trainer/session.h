#pragma once

// One model in training: the step, and what it cost.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/workload.h"
#include "trainer/optimizer.h"
#include "trainer/transformer.h"

namespace trainfare::trainer {

// Wall time of the parts of one step, from the monotonic clock. On a GPU each
// part ends with a synchronisation.
struct StepTimes {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  double step_s = 0;  // input, zeroing, forward, backward, optimizer
  double loss = 0;
};

class Session {
 public:
  // Throws InputError where this trainer cannot run the precision or optimizer.
  Session(std::unique_ptr<Encoder> encoder,
          model::Precision precision,
          const OptimizerOptions& optimizer);

  // One optimizer step over the micro-batches that `next_batch(i)` gives for i
  // in [0, accumulation).
  template <class NextBatch>
  StepTimes Step(int64_t accumulation, const NextBatch& next_batch) {
    const double start = Now();
    optimizer_->ZeroGradients();
    StepTimes times;
    for (int64_t i = 0; i < accumulation; ++i) {
      ForwardBackward(next_batch(i), accumulation, times);
    }
    Update(times);
    times.step_s = Now() - start;
    return times;
  }

  // Logits without dropout or gradients.
  at::Tensor Predict(const Batch& batch) const;

  Encoder& encoder() { return *encoder_; }
  Optimizer& optimizer() { return *optimizer_; }
  // Kernels of one optimizer step, known after the second; absent where one
  // operator is several launches (LibTorch's multi-tensor kernels on a GPU).
  std::optional<int64_t> optimizer_launches() const {
    return optimizer_launches_;
  }
  // Gives the model back, without its optimizer state.
  std::unique_ptr<Encoder> Release() { return std::move(encoder_); }

 private:
  double Now() const;  // seconds; waits for a GPU's queue first
  Output Forward(const Batch& batch, bool training) const;
  void ForwardBackward(const Batch& batch,
                       int64_t accumulation,
                       StepTimes& times);
  void Update(StepTimes& times);
  bool LaunchesCount() const;

  std::unique_ptr<Encoder> encoder_;
  model::Precision precision_;
  model::Optimizer optimizer_kind_;
  std::optional<int64_t> optimizer_launches_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace trainfare::trainer
