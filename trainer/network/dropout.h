#pragma once

#include <cstdint>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// Zeroes each element with the given probability and scales the rest by
// 1 / (1 - probability); the identity when not training or probability is 0.
//
// On a CPU the mask comes from a generator of ours, counted by block: the
// stock operator spends two thirds of its time in a serial-quality generator
// and two extra passes over memory. The same seed gives the same masks for any
// number of threads.
at::Tensor Dropout(const at::Tensor& input, double probability, bool training);

// One byte an element, 1 where Dropout() would keep it at this point of the
// sequence: for operators that drop out on the way. On a CPU.
at::Tensor DropoutMask(at::IntArrayRef sizes, double probability);

// The key of the next mask of the sequence, for masks that are drawn on a GPU.
uint64_t NextDropoutKey();
// The bound, among 2^32 equally likely draws, below which they are dropped.
uint32_t DropoutThreshold(double probability);

// Where the sequence of masks stands.
struct DropoutSequence {
  uint64_t seed = 0;
  uint64_t calls = 0;  // since the sequence started
};
DropoutSequence DropoutState();
// Starts the sequence of masks again, behind so many `calls` of it.
void SeedDropout(uint64_t seed, uint64_t calls = 0);

}  // namespace trainfare::trainer
