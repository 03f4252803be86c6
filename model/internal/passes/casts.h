#pragma once

// What is narrowed and widened along a pass: operands and gradients under
// autocast, weights that stay wide, and operands of products in 8 or 4 bits.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// What the second operand of a product of narrow ones is.
enum class Reads { kWeights, kGradient };

// Autocast narrows what a product reads, each time that one reads it.
void CastOperand(Pass& pass, int64_t elements);

// Back through a cast of autocast's.
void WidenGradient(Pass& pass, int64_t elements);
void NarrowGradient(Pass& pass, int64_t elements);

// The gradient of parameters that a pass has narrow copies of.
void WidenParameterGradient(Pass& pass, int64_t elements);

// A stack whose weights stay wide keeps a narrow copy of every matrix and bias
// for the length of a pass.
void CastWeights(Pass& pass);

// Elements of the matrices outside blocks among them. A table that is looked up
// and multiplies nothing is not: autocast narrows what products read.
int64_t MatrixElementsOutsideBlocks(const Workload& workload);

// A block that is computed again under autocast, whose copies went with the
// pass forward: a block's share of them all. Shards are gathered narrow.
void CastWeightsAgain(Pass& pass);

// Whether products that make weights' gradients have such operands, too.
bool NarrowWeightGradients(const Workload& workload);

// An operand in 8 or 4 bits, and transposed for the pass back, in one kernel; of
// a pass forward alone only the first, as where weight gradients are of operands
// in 16 bits. Source: NVIDIA TransformerEngine, cast_transpose; a scale of a
// row serves one of the two (pytorch/ao, float8/README.md).
void NarrowOperand(Pass& pass, KernelName name, int64_t elements);

// Makes the last kernel a product of such operands, the second of which may be a
// weight; its result is wide.
void ReadNarrowed(Pass& pass, Reads second);

}  // namespace trainfare::model::internal
