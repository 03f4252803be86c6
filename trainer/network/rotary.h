#pragma once

// Rotary positions (Su et al. 2021): each pair of a head's elements turned by
// an angle that grows with the position.

#include <cstdint>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// How frequencies are stretched for sequences longer than those of
// pre-training.
enum class RotaryScaling {
  kNone,
  kLinear,  // all by one factor (Chen et al. 2023)
  kLlama3,  // slow ones by a factor, fast ones not (Llama 3.1)
};

struct RotaryOptions {
  double base = 10'000.0;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1.0;
  // For kLlama3: wavelengths shorter than original_positions / high are kept,
  // those longer than original_positions / low are stretched.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double original_positions = 8192.0;
};

// Of T positions, (T, head size): the second half repeats the first.
struct RotaryTable {
  at::Tensor cosines;
  at::Tensor sines;
};

// `head_size` is even; computed in double precision, kept as `kind` says.
RotaryTable MakeRotaryTable(const RotaryOptions& options,
                            int64_t head_size,
                            int64_t length,
                            const at::TensorOptions& kind);

// x cos + (-second half, first half) sin of heads (B, heads, T, head size), an
// operation at a time.
at::Tensor Rotate(const at::Tensor& heads, const RotaryTable& table);

}  // namespace trainfare::trainer
