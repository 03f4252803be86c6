#pragma once

// Norms, dropout and the residuals around the parts of a block.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Norms of so many rows of a width; `read`: bytes of an element of what is
// normed.
void NormForward(Pass& pass, int64_t rows, int64_t width, int64_t read);
void NormBackward(Pass& pass, int64_t rows, int64_t width, int64_t read);

// Autocast keeps the factor of a norm in fp32, and so is what it makes.
int64_t NormWidth(const Pass& pass, int64_t read);

// Norms of queries, keys and values, which their projections leave narrow.
// `rotates`: in a block with rotary positions.
void HeadNormsForward(Pass& pass,
                      bool rotates,
                      int64_t query_tokens,
                      int64_t key_tokens);
void HeadNormsBackward(Pass& pass,
                       bool rotates,
                       int64_t query_tokens,
                       int64_t key_tokens);

// A kernel of its own; none where nothing is dropped out.
void Dropout(Pass& pass, int64_t elements, int64_t width);
void DropoutBackward(Pass& pass, int64_t elements, int64_t width);

// dropout(x + bias) + residual, then LayerNorm (before the block in a
// decoder: the same kernels in another order).
void ResidualAndNormForward(Pass& pass, int64_t tokens);
void ResidualAndNormBackward(Pass& pass, int64_t tokens);

// Gradients of the two branches of a residual meet.
void ResidualGradientAdd(Pass& pass, int64_t tokens);

// Norms of hidden states of so many tokens.
inline void LayerNormForward(Pass& pass, int64_t tokens) {
  NormForward(pass, pass.OfTokens(tokens), pass.architecture.hidden, pass.wide);
}
inline void LayerNormBackward(Pass& pass, int64_t tokens) {
  NormBackward(
      pass, pass.OfTokens(tokens), pass.architecture.hidden, pass.wide);
}

}  // namespace trainfare::model::internal
