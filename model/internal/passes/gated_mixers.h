#pragma once

// What state spaces, the gated delta rule and short convolutions share:
// products over chunks of tokens, the convolution before them or alone, and the
// gated norm behind.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// One kernel of products over chunks on chip, `batch` times m x n x k, with
// what its operands are scaled by: exponentials of differences of sums over
// time.
struct ChunkProduct {
  KernelName name;
  int64_t batch = 0;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t read = 0;
  int64_t written = 0;
  int64_t scaled = 0;  // numbers that an exponential scales
};
void Push(Pass& pass, const ChunkProduct& product);

// What the kernel of a convolution has behind its filters.
enum class Behind { kNothing, kSilu };

// Filters of each channel over the last `reach` tokens; of so many elements.
void CausalConvolution(Pass& pass,
                       int64_t elements,
                       int64_t reach,
                       Behind behind = Behind::kSilu);
// Makes what SiLU took anew.
void CausalConvolutionBackward(Pass& pass,
                               int64_t elements,
                               int64_t reach,
                               Behind behind = Behind::kSilu);

// RMSNorm of what a mixer gave, times SiLU of its gate. `again`: the pass
// backward makes its result anew beside the gradients.
void GatedNorm(Pass& pass, int64_t rows, int64_t elements);
void GatedNormBackward(Pass& pass, int64_t rows, int64_t elements, bool again);

}  // namespace trainfare::model::internal
