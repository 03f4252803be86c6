#pragma once

// Bytes of an element of what flows through blocks: what kernels move of it,
// and what is kept.

#include <cstdint>

#include "model/stack_rules.h"
#include "model/workload.h"

namespace trainfare::model {

inline constexpr int64_t kIndexBytes = 8;  // token ids are int64
inline constexpr int64_t kMaskBytes = 1;   // a dropout mask element

struct Widths {
  bool autocast;    // operands are narrow copies of wide tensors
  int64_t element;  // operands of matrix products
  // Results of LayerNorm and softmax. Autocast keeps them in fp32; hand-fused
  // and compiled stacks keep them in the narrow type.
  int64_t wide;
  // What softmax gives of scores that leave the chip: models with RMSNorm take
  // it in fp32, operation by operation, and narrow that (modeling_llama.py of
  // Transformers, eager_attention_forward; modeling_t5.py).
  int64_t probability;
  int64_t mask;  // of a model with dropout, while it trains; else 0

  explicit Widths(const Workload& w)
      : autocast(Autocasts(w)),
        element(BytesPerElement(w.precision)),
        wide(autocast ? kSingle : element),
        probability(w.architecture.norm == Norm::kRms &&
                            OperationByOperation(w.stack)
                        ? kSingle
                        : wide),
        mask(w.architecture.dropout > 0 ? kMaskBytes : 0) {}
};

// Bytes of a parameter as the passes take it, and of its gradient as they make
// it. LightSeq2 trains narrow ones without fp32 masters, 2 + 2 bytes a parameter
// (Wang et al. 2022, LightSeq2); others that keep weights narrow have masters;
// the rest casts fp32 weights.
inline int64_t ParameterWidth(const Workload& w) {
  return NarrowWeights(w) ? BytesPerElement(w.precision) : kSingle;
}

}  // namespace trainfare::model
