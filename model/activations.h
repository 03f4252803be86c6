#pragma once

// What embeddings, blocks and head keep for the backward pass, in bytes of one
// rank. docs/models/memory.md derives them.

#include <cstdint>
#include <vector>

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// Bytes that one block keeps for its backward pass: of such parts, or of attention
// and a feed-forward, dense unless it has experts.
int64_t LayerActivationBytes(const Workload& workload, const BlockParts& parts);
inline int64_t LayerActivationBytes(const Workload& workload,
                                    bool experts = false) {
  return LayerActivationBytes(workload, TransformerBlock(experts));
}
int64_t DecoderLayerActivationBytes(const Workload& workload);

// Bytes that block number `block` of the forward pass, from 0 on, keeps for its
// backward pass as the workload has it: all, or what it is computed again from;
// and those of all blocks.
int64_t KeptByBlock(const Workload& workload, int64_t block);
int64_t KeptByBlocks(const Workload& workload);

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

// Of embeddings of blocks: those of all, which stay until the lowest block is
// through, and what their own gradients ask for; and these gradients on the way
// down, beside which autograd makes those of one block as wide.
int64_t LayerEmbeddingBytes(const Workload& workload);
int64_t LayerEmbeddingGradientBytes(const Workload& workload);

// A rank's blocks that have a backward pass, by their parts: all, and those that
// keep what they keep, without the lowest, which are computed again. They hang
// on no batch.
struct BlockSorts {
  std::vector<BlocksAlike> all;
  std::vector<BlocksAlike> kept;
  int64_t again = 0;
};
BlockSorts BlockSortsOf(const Workload& workload);

ActivationBytes Activations(const Workload& workload);
// The same of a workload with these.
ActivationBytes Activations(const Workload& workload, const BlockSorts& sorts);

}  // namespace trainfare::model
