#pragma once

// Positions as they enter attention: rotated queries and keys, and the biases
// of pairs. Tables of them are embeddings.

#include <cstdint>

#include "model/internal/passes/attention_shape.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Autocast keeps the tables of sines in fp32, and so is what they make.
int64_t RotatedWidth(const Pass& pass, const AttentionShape& shape);

// x cos + rotate(x) sin over queries and keys (Su et al. 2021). Operation by
// operation: x cos, - of one half, both halves joined, sin, the sum.
void RotaryForward(Pass& pass,
                   const AttentionShape& shape,
                   int64_t query_tokens,
                   int64_t key_tokens);

// The backward pass of RotaryForward(). Operation by operation: the gradient
// times sin, its halves apart, - of one, each half laid into zeros, times cos,
// and all three added.
void RotaryBackward(Pass& pass,
                    const AttentionShape& shape,
                    int64_t query_tokens,
                    int64_t key_tokens);

// What positions widened is narrowed for the product that reads it.
void CastRotated(Pass& pass, const AttentionShape& shape, int64_t elements);

// Back through CastRotated().
void WidenRotatedGradient(Pass& pass,
                          const AttentionShape& shape,
                          int64_t elements);

// Raffel et al. 2020, section 2.1: once for all blocks of a side, or for each
// (UMT5), from distances to buckets, from these to a bias a head, and, operation by
// operation, the mask of each sequence with it.
void PositionBiasForward(Pass& pass, int64_t length);

// The gradients of all sequences meet, and those of a bucket.
void PositionBiasBackward(Pass& pass, int64_t length);

}  // namespace trainfare::model::internal
