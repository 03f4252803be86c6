#include "trainer/network/gated_block.h"

#include <cmath>

#include "model/error.h"
#include "trainer/network/widen.h"

namespace trainfare::trainer {

at::Tensor RmsNorm(const at::Tensor& input,
                   const at::Tensor& weight,
                   double epsilon) {
  const at::Tensor wide = Widened(input);
  const at::Tensor scale =
      at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
  return weight * (wide * scale).to(input.scalar_type());
}

at::Tensor GeluByOperations(const at::Tensor& input) {
  const at::Tensor inner =
      (input + 0.044715 * at::pow(input, 3.0)) * std::sqrt(2.0 / M_PI);
  return 0.5 * input * (1.0 + at::tanh(inner));
}

at::Tensor GateOf(model::Activation activation, const at::Tensor& input) {
  switch (activation) {
    case model::Activation::kGelu:
      return at::gelu(input);
    case model::Activation::kGeluTanh:
      return at::gelu(input, "tanh");
    case model::Activation::kGeluNew:
      return GeluByOperations(input);
    case model::Activation::kRelu:
      return at::relu(input);
    case model::Activation::kReluSquared:
      return at::square(at::relu(input));
    case model::Activation::kSilu:
      return at::silu(input);
    case model::Activation::kXielu:
      break;  // which has weights (model/trainer_rules.cc)
  }
  ENSURE(false, "unknown activation");
}

at::Tensor RepeatHeads(const at::Tensor& heads, int64_t times) {
  if (times == 1) return heads;
  return heads.unsqueeze(2)
      .expand({-1, -1, times, -1, -1})
      .reshape({heads.size(0), -1, heads.size(2), heads.size(3)});
}

}  // namespace trainfare::trainer
