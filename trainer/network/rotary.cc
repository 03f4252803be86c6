#include "trainer/network/rotary.h"

#include <cmath>
#include <numbers>

namespace trainfare::trainer {
namespace {

// Grattafiori et al. 2024; Transformers' rope type "llama3": between the two
// wavelengths the factor goes over smoothly.
double ScaledForLlama3(double frequency, const RotaryOptions& o) {
  const double turns =
      o.original_positions * frequency / (2.0 * std::numbers::pi);
  if (turns > o.high_frequency_factor) return frequency;
  if (turns < o.low_frequency_factor) return frequency / o.factor;
  const double kept = (turns - o.low_frequency_factor) /
                      (o.high_frequency_factor - o.low_frequency_factor);
  return (1.0 - kept) * frequency / o.factor + kept * frequency;
}

double Scaled(double frequency, const RotaryOptions& options) {
  switch (options.scaling) {
    case RotaryScaling::kNone:
      break;
    case RotaryScaling::kLinear:
      return frequency / options.factor;
    case RotaryScaling::kLlama3:
      return ScaledForLlama3(frequency, options);
  }
  return frequency;
}

}  // namespace

RotaryTable MakeRotaryTable(const RotaryOptions& options,
                            int64_t head_size,
                            int64_t length,
                            const at::TensorOptions& kind) {
  const at::NoGradGuard no_grad;
  const int64_t half = head_size / 2;
  at::Tensor frequencies = at::empty({half}, at::kDouble);
  auto* const values = frequencies.mutable_data_ptr<double>();
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(
        options.base,
        -2.0 * static_cast<double>(i) / static_cast<double>(head_size));
    values[i] = Scaled(frequency, options);
  }
  const at::Tensor angles =
      at::outer(at::arange(length, at::kDouble), frequencies).repeat({1, 2});
  return {angles.cos().to(kind), angles.sin().to(kind)};
}

at::Tensor Rotate(const at::Tensor& heads, const RotaryTable& table) {
  const int64_t half = heads.size(-1) / 2;
  const at::Tensor turned = at::cat(
      {heads.narrow(-1, half, half).neg(), heads.narrow(-1, 0, half)}, -1);
  return heads * table.cosines + turned * table.sines;
}

}  // namespace trainfare::trainer
