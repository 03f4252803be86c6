#pragma once

// Products with the weights of a model, and the gradients of their inputs,
// weights and biases, with the casts and adapters that go with them.

#include <cstdint>
#include <span>

#include "model/internal/passes/matrices.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// How a product's input came to it.
enum class Input { kAsItIs, kNarrowed };

// Y (m, n) = X (m, k) W (k, n) by a matrix of a block.
void BlockGemm(Pass& pass, KernelName name, int64_t m, int64_t n, int64_t k);

// Before CUDA 11.4 PyTorch lays a bias out as the result of its product,
// which adds to it.
void LaidOutBias(Pass& pass, int64_t elements);

// The gradients of Y (m, n) = X (m, k) W (k, n): of input, weight and bias.
// `bias`: its gradient is a kernel of its own, where products do not have it.
// `input`: whether X was narrowed for this product, so that its gradient is
// widened.
void LinearBackward(Pass& pass,
                    Matrix matrix,
                    int64_t m,
                    int64_t n,
                    int64_t k,
                    bool bias = true,
                    Input input = Input::kAsItIs);

// The backward pass of one product of several matrices side by side; each may
// have its own adapter.
void MergedLinearBackward(Pass& pass,
                          std::span<const Matrix> matrices,
                          int64_t tokens,
                          bool bias);

}  // namespace trainfare::model::internal
