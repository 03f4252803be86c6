#pragma once

// The extents of one attention block, and what its positions ask of it.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Extents of one attention block: queries of one side, keys of another.
struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t query_length;
  int64_t key_length;
  int64_t head_size;  // of queries and keys
  // Grouped attention has fewer heads of keys and values; values may have a
  // size of their own.
  int64_t key_heads;
  int64_t value_size;
  // Pairs of a query and a key that see each other, in one sequence: all of
  // them, s (s + 1) / 2 where attention is causal, less within a window.
  int64_t seen;
  // Positions enter here: not across two sides, and not in every block.
  bool positions;

  int64_t seen_scores() const { return products() * seen; }
  int64_t products() const { return batch * heads; }
  int64_t scores() const { return products() * query_length * key_length; }
  int64_t query_elements() const {
    return products() * query_length * head_size;
  }
  int64_t context_elements() const {
    return products() * query_length * value_size;
  }
  // Keys and values together.
  int64_t key_value_elements() const {
    return batch * key_heads * key_length * (head_size + value_size);
  }
};

// A bias a head and pair of positions, which scores have added to them.
bool Biased(const Pass& pass, const AttentionShape& shape);
// It has a gradient of its own in each block.
bool BiasTrains(const Pass& pass, const AttentionShape& shape);
// Queries and keys turn with their positions.
bool Rotates(const Pass& pass, const AttentionShape& shape);

// Of one side with itself.
AttentionShape SelfAttention(const Pass& pass,
                             int64_t length,
                             bool windowed = false,
                             bool positions = true);

// Pairs of a query and a key of one sequence that see each other. Ranks that
// divide a sequence have as many each: of its halves' parts one from the front
// and one from the back (Megatron-LM).
int64_t PairsSeen(const Workload& workload, int64_t length, bool windowed);

// Of the decoder's side with the encoder's.
AttentionShape CrossAttention(const Pass& pass);

}  // namespace trainfare::model::internal
