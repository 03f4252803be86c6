#pragma once

// How ranks have a model and its training state together, as far as their
// numbers say.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/workload.h"

namespace trainfare::model {

// What is wrong with how ranks share, and which field of it: the rules of
// Parallel alone, for files that know where the field stands.
struct ParallelFault {
  std::string_view field;
  std::string message;
};
std::optional<ParallelFault> FaultOf(const Parallel& parallel);
// Throws InputError that says it, where there is one.
void RequireNone(const std::optional<ParallelFault>& fault);

// Which part of the state each kind of sharding divides (Rajbhandari et al. 2020,
// section 5; Zhao et al. 2023, "PyTorch FSDP").
bool ShardsGradients(const Parallel& parallel);
bool ShardsParameters(const Parallel& parallel);

// The same over so many devices: `data` is their number, or that of the copies
// of a model that several have together. On one device nothing is shared, but
// with its host. Throws InputError that names the field when they are not as
// many as was asked for, or do not divide into the copies.
Parallel OverDevices(const Parallel& parallel, int64_t devices);

// Ranks that have one batch's micro-batches together (model/split.h); 1: each
// has all of a model and of its sequences. The field that makes them several.
int64_t RanksOfModel(const Parallel& parallel);
std::string_view FieldOfModelRanks(const Parallel& parallel);
// Of what a model takes in all, as much as each of them has on an average.
template <class Quantity>
Quantity OfEachRank(const Quantity& of_model, const Parallel& parallel) {
  return of_model / static_cast<double>(RanksOfModel(parallel));
}

// Whether a rank has less than a whole model and whole sequences.
bool DividesModel(const Parallel& parallel);

// Parts that the weights are in, a rank each: those of layers and of blocks.
int64_t PartsOfWeights(const Parallel& parallel);

// Ranks that have a part of every expert each, and ranks of a layer that have
// other experts each.
int64_t PartsOfExperts(const Parallel& parallel);
int64_t ExpertFolds(const Parallel& parallel);

// Copies of the model that train, each a batch of its own.
int64_t CopiesOf(const Parallel& parallel);
// Ranks with the same weights, whose gradients are summed: of each copy those
// that divide its sequences.
int64_t RanksThatSum(const Parallel& parallel);
// Ranks that the experts of a block lie over, of each as many parts.
int64_t RanksOfExperts(const Parallel& parallel);
// As few devices as such ranks can be: all of `data`, where that is known.
int64_t FewestDevices(const Parallel& parallel);

// Ranks that one copy of the state is divided over; 1: each has all of it.
// `parallel.data` is known.
int64_t ShardsOf(const Parallel& parallel);

// Whether anything waits in the host's memory.
bool Offloads(const Parallel& parallel);

// Whether a device holds less than the whole state: other ranks have a share,
// or its host.
bool DividesState(const Parallel& parallel);

// The largest share of so many elements: the last ranks may have fewer.
int64_t ShareOf(int64_t elements, const Parallel& parallel);

}  // namespace trainfare::model
