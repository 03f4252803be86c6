#pragma once

// What blocks and head keep for the backward pass, and what passes make and
// drop meanwhile, in bytes of one rank. docs/models/memory.md derives them.

#include <cstdint>

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// Bytes of an element of what norms and softmax give.
int64_t BytesOfWideResult(const Workload& workload);

// Whether logits are over the vocabulary.
bool PredictsVocabulary(const Workload& workload);

// Bytes that one block keeps for its backward pass.
int64_t LayerActivationBytes(const Workload& workload, bool experts = false);
int64_t DecoderLayerActivationBytes(const Workload& workload);

// Bytes that block number `block` of the forward pass, from 0 on, keeps for its
// backward pass as the workload has it: all, or what it is computed again from;
// and those of all blocks.
int64_t KeptByBlock(const Workload& workload, int64_t block);
int64_t KeptByBlocks(const Workload& workload);

// Rows whose logits a stack that chunks its loss holds at a time
// (StackRules::chunks_loss): the next power of two above T / ceil(V / h), so
// that they take no more than the hidden states of all T rows. Source:
// linkedin/Liger-Kernel, fused_linear_cross_entropy.py.
int64_t LossChunk(const Architecture& architecture, int64_t rows);

// The lowest block that has a backward pass, while it is at work.
struct LowestBlockBytes {
  int64_t held = 0;  // its activations, with what stands below it
  int64_t made = 0;  // gradients of its insides
};

// Activations when the backward pass starts: what blocks and embeddings keep,
// and what the head keeps, until its gradients are made; then what the block at
// work has besides, which is computed again: all of it, or parts; and those at
// the end of the way.
struct ActivationBytes {
  int64_t kept = 0;
  int64_t head = 0;
  int64_t anew = 0;
  LowestBlockBytes lowest;
};

int64_t EmbeddingBytes(const Workload& workload, int64_t tokens);

// Logits, their log-probabilities and, in training, the gradient, in fp32.
int64_t LogitBytes(const Workload& workload);

// Gradients inside the block that a backward pass is in, at their most.
int64_t BlockGradientBytes(const Workload& workload, bool experts);

// A forward pass that keeps nothing: queries, keys, values and context.
int64_t ForwardTransients(const Workload& workload);

ActivationBytes Activations(const Workload& workload);

}  // namespace trainfare::model
