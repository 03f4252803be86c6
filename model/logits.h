#pragma once

// Where a model's head gives logits, and what these take.

#include <cstdint>

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// Rows at which the head gives logits, and how many classes each has.
struct Logits {
  int64_t rows = 0;
  int64_t classes = 0;
  bool vocabulary = false;
  int64_t heads = 1;  // that each give so many
};
Logits LogitsOf(const Workload& workload);

// Tokens of the side that has the head.
int64_t HeadTokens(const Workload& workload);

// Whether logits are over the vocabulary.
bool PredictsVocabulary(const Workload& workload);

// Whether a causal model's logits are made, and lost, some rows at a time.
bool ChunksLoss(const Workload& workload);

// Rows whose logits a stack that chunks its loss holds at a time
// (StackRules::chunks_loss): the next power of two above T / ceil(V / h), so
// that they take no more than the hidden states of all T rows. Source:
// linkedin/Liger-Kernel, fused_linear_cross_entropy.py.
int64_t LossChunk(const Architecture& architecture, int64_t rows);

// Logits, and what a loss makes of them, at the worst moment of the work; and at
// that of its pass forward.
int64_t LogitBytes(const Workload& workload);
int64_t ForwardLogitBytes(const Workload& workload);

}  // namespace trainfare::model
