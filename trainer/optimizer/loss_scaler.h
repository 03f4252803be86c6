#pragma once

// Dynamic loss scaling (Micikevicius et al. 2018, section 3.2): fp16 gradients
// below 6e-8 vanish, so the loss is multiplied before the backward pass and the
// gradients divided after it. A step whose gradients overflow is skipped and
// the scale halved; after so many steps without, it is doubled. The numbers are
// those of torch.amp.GradScaler.

#include <cstdint>
#include <vector>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// What a run goes on from.
struct LossScale {
  double scale = 65536;
  int64_t good_steps = 0;     // in a row, at this scale
  int64_t skipped_steps = 0;  // of the run
};

class LossScaler {
 public:
  static constexpr int64_t kGrowthInterval = 2000;

  at::Tensor Scaled(const at::Tensor& loss) const {
    return loss * state_.scale;
  }
  // Divides the gradients, in place, and moves the scale. False where one of
  // them is not finite: the step must then be skipped.
  bool Unscale(const std::vector<at::Tensor>& gradients);
  // The same without dividing: of narrow gradients, which would vanish.
  bool Check(const std::vector<at::Tensor>& gradients);

  const LossScale& state() const { return state_; }
  void Restore(const LossScale& state) { state_ = state; }

 private:
  bool Divide(const std::vector<at::Tensor>& gradients, double divisor);

  LossScale state_;
};

}  // namespace trainfare::trainer
