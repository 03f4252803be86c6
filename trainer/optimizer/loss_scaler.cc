#include "trainer/optimizer/loss_scaler.h"

namespace trainfare::trainer {

bool LossScaler::Unscale(const std::vector<at::Tensor>& gradients) {
  return Divide(gradients, state_.scale);
}

bool LossScaler::Check(const std::vector<at::Tensor>& gradients) {
  return Divide(gradients, 1.0);
}

bool LossScaler::Divide(const std::vector<at::Tensor>& gradients,
                        double divisor) {
  constexpr double kGrowth = 2.0;
  constexpr double kBackoff = 0.5;
  const at::NoGradGuard no_grad;
  const auto options = gradients.front().options().dtype(at::kFloat);
  at::Tensor infinite = at::zeros({1}, options);
  const at::Tensor inverse = at::full({1}, 1.0 / divisor, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, infinite, inverse);
  if (infinite.item<float>() != 0.0F) {
    state_.scale *= kBackoff;
    state_.good_steps = 0;
    ++state_.skipped_steps;
    return false;
  }
  if (++state_.good_steps == kGrowthInterval) {
    state_.scale *= kGrowth;
    state_.good_steps = 0;
  }
  return true;
}

}  // namespace trainfare::trainer
