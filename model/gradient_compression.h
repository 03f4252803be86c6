#pragma once

// Gradients made smaller before the all-reduce: what is sent, and the kernels
// that make and undo it.
//
//   half       n elements become 2 n bytes, by one cast before and one after;
//              by none where state is shared and weights are narrow.
//   power_sgd  a matrix M (n, m) becomes P (n, r) and Q (m, r), whose sums are
//              taken instead (Vogels et al. 2019, algorithm 1):
//                P = M Q; all-reduce P; orthogonalise P;
//                Q = M^T P; all-reduce Q; M' = P Q^T; error = M - M'
//              r (n + m) elements in two transfers. Vectors, and matrices that
//              would not halve (n m < 2 r (n + m), PyTorch's own limit), are
//              sent as they are, in a transfer of their own.
//
// docs/models/counts.md has BERT-base's; by hand:
// tests/model/gradient_compression_test.cc.

#include <cstdint>
#include <span>
#include <vector>

#include "model/architecture.h"
#include "model/kernel_list.h"
#include "model/workload.h"

namespace trainfare::model {

// What one bucket of gradients sends.
struct SentGradients {
  int64_t bytes = 0;
  int64_t transfers = 0;  // all-reduces one after another
};

// `width`: bytes of an uncompressed element.
SentGradients SentOf(const GradientCompression& compression,
                     std::span<const ParameterTensor> bucket,
                     int64_t width);

// Appends the kernels of one step.
void AppendCompressionKernels(const Workload& workload,
                              std::vector<Kernel>& kernels);

}  // namespace trainfare::model
