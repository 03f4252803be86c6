#pragma once

// Low-rank adapters beside frozen matrices (LoRA), and matrices of few bits,
// which are widened for the products that read them (QLoRA).

#include <cstdint>

#include "model/internal/passes/grouped_products.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// (X A) B s, added to X W: two thin products and a pass over the result,
// which a compiler fuses into the second; before them dropout of X, if any.
void AdapterForward(
    Pass& pass, Matrix matrix, const Routed& r, int64_t n, int64_t k);

// The same of one group of `m` rows.
inline void AdapterForward(
    Pass& pass, Matrix matrix, int64_t m, int64_t n, int64_t k) {
  AdapterForward(pass, matrix, OneGroup(m), n, k);
}

// The backward pass of the same: B's gradient, that of X A, A's gradient, and
// X's, through dropout, added.
void AdapterBackward(
    Pass& pass, Matrix matrix, const Routed& r, int64_t n, int64_t k);

// Frozen matrices of few bits are widened each time that a product reads them
// (Dettmers et al. 2023).
void Dequantise(Pass& pass, int64_t elements);

// The gradient of what a frozen matrix took reads it widened, too: once more,
// or as the forward pass kept it.
void DequantiseAgain(Pass& pass, int64_t elements);

}  // namespace trainfare::model::internal
