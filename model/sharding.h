#pragma once

// Training state that data-parallel ranks share: what each keeps, what is
// gathered and summed where. docs/models/sharding.md works an 8 B model over 8
// ranks by hand; tests/model/sharding_test.cc asserts it.

#include <cstdint>
#include <vector>

#include "model/parallel.h"
#include "model/workload.h"

namespace trainfare::model {

// Elements of the bucket of gradients that ranks fill which hold all
// parameters: DeepSpeed's reduce_bucket_size.
inline constexpr int64_t kReduceBucket = 500'000'000;

// Whether the parameters' shard is that of their fp32 masters, narrow only
// where it is gathered, and gradients are summed in fp32.
bool MastersAreShard(const Workload& workload);

// Parameters that are gathered, and gradients that are summed, together.
struct ShardUnit {
  int64_t elements = 0;   // adapters among them
  int64_t trained = 0;    // of these
  int64_t quantised = 0;  // of these, in few bits
  int64_t in_fp8 = 0;     // of these, gathered in 8 bits
  // Of all and of what trains, those of experts that other ranks have others of.
  int64_t of_experts = 0;
  int64_t trained_of_experts = 0;
};

// So many blocks alike, one behind the other.
struct ShardedBlocks {
  ShardUnit unit;
  int64_t count = 0;
};

// The blocks, and what is outside of them: embeddings, last norm and head are
// one unit, which stays gathered from its first use to the end of the backward
// pass (FSDP's root module).
struct ShardUnits {
  ShardUnit root;
  std::vector<ShardedBlocks> blocks;  // in the order of the forward pass
};
ShardUnits ShardUnitsOf(const Workload& workload);

// A unit by the groups of ranks that have it: those of experts are fewer.
struct UnitParts {
  ShardUnit rest;
  ShardUnit experts;
};
UnitParts PartsOfUnit(const ShardUnit& unit);

// Of the root, what is gathered by itself (Parallel::embedding_units): nothing,
// or the word table and an output layer apart from it.
struct EmbeddingUnits {
  ShardUnit embeddings;
  ShardUnit output;
};
EmbeddingUnits EmbeddingUnitsOf(const Workload& workload);

// Units within all blocks that adapters are by themselves, each gathered and
// summed where it is used (Trainable::adapters_as_units).
int64_t AdapterUnits(const Workload& workload);

// Matrices of experts that run one after another, each a module of its own that
// is gathered where it is called, or shards of them (DeepSpeed's kZero3; PyTorch's
// FSDP gathers whole blocks).
int64_t ExpertModules(const Workload& workload);

// Whether matrices of the blocks are gathered in 8 bits.
bool GathersInFp8(const Workload& workload);

// Elements that a rank has of so many, where ranks divide them. Those of routed
// experts are divided over fewer: those that have the same ones.
struct DividedElements {
  int64_t all = 0;
  int64_t of_experts = 0;  // of these
};
int64_t ShareOfRank(const Workload& workload, const DividedElements& elements);
// Of what trains, that which a rank updates.
int64_t UpdatedByRank(const Workload& workload);

// Whether a rank keeps its share of a micro-batch's gradients alone, which are
// summed behind each; else all of them, until the last.
bool KeepsShareOfGradients(const Workload& workload);

// Bytes of a unit when it is gathered, and of its gradients as they are summed.
int64_t GatheredBytes(const Workload& workload, const ShardUnit& unit);
int64_t SummedBytes(const Workload& workload, const ShardUnit& unit);

// Bytes of a gradient's element as the ranks keep it, and as they sum it: in 16
// bits where it is compressed to half (FSDP's reduce_dtype, DeepSpeed's
// communication_data_type).
int64_t GradientWidth(const Workload& workload);
int64_t SumWidth(const Workload& workload);

}  // namespace trainfare::model
