#pragma once

// Ranks that have a part of a model each: of every layer (Parallel::tensor), of
// every sequence (Parallel::context), some of its experts (Parallel::expert) or
// of its blocks (Parallel::pipeline). What one of them has is a workload
// again, of a narrower or shorter model, so that kernels and memory are counted
// as ever. docs/models/splits.md works a model of 8 ranks by hand;
// tests/model/split_test.cc asserts it.

#include <cstdint>
#include <optional>

#include "model/expert_routing.h"
#include "model/parallel.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model {

// What stands in the way of dividing this model so, and which field of Parallel
// it is; nullopt: nothing does.
std::optional<ParallelFault> FaultOfSplit(const Workload& workload);

// The first block of stage number `stage` of the pipeline, from 0 on, as its cut
// has it; of as many stages as there are all blocks are before it.
int64_t FirstBlockOfStage(const Workload& workload, int64_t stage);
int64_t BlocksOfStage(const Workload& workload, int64_t stage);

// What a rank of that stage has of the workload: of a divided layer its part of
// heads, inner widths and vocabulary, of the model the stage's blocks, with
// embeddings in the first and head in the last. The result divides no model.
Workload OfStage(const Workload& workload, int64_t stage);
// The same with the activations of all micro-batches that are under way at
// once, for its memory.
Workload OfStageInFlight(const Workload& workload, int64_t stage);

// Tokens' hidden states that ranks of one layer send each other in a pass, all
// in numbers of collectives: sums of what each rank made (all-reduce), or, where
// they divide the tokens between products, gathers and sums that scatter.
struct TensorMessages {
  Bytes<>
      hidden;  // of all tokens of a micro-batch, in a matrix operand's width
  // Collectives of so many bytes in the forward pass, of what runs again and of
  // gradients in the backward pass.
  int64_t forward = 0;
  int64_t again = 0;
  int64_t backward = 0;
};
// Those of a stage, of which a rank has that (OfStage). Of two products one
// behind the other the second sums: attention's output and the feed-forward's,
// and their inputs' gradients.
// Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.
TensorMessages TensorMessagesOf(const Workload& workload,
                                const Workload& of_stage);

// Keys and values that ranks which divide sequences pass on, each to the next,
// until all have seen those of all (Liu et al. 2023, "Ring Attention with
// Blockwise Transformers", section 3; Megatron-LM's cp_comm_type p2p).
struct ContextMessages {
  Bytes<> keys;  // and values of a block and micro-batch, of a rank's part
  // Rounds of a micro-batch that pass these on. Blocks that run again make one
  // more; in the backward pass gradients of keys and values go with them.
  int64_t forward = 0;
  int64_t backward = 0;
  // Share of attention's core of the products of the blocks, which it computes
  // beside the messages.
  double core = 0;
};
ContextMessages ContextMessagesOf(const Workload& workload,
                                  const Workload& of_stage);

// Tokens that ranks which divide experts send to these and back: exchanges of
// all with all, of so many bytes on each rank (Lepikhin et al. 2021, "GShard",
// section 3.2).
struct ExpertMessages {
  Bytes<> rows;  // of a block and micro-batch, those that stay among them
  Bytes<> once;  // the same of each token one
  ExpertRouting routing;
  ExpertExchange exchange = ExpertExchange::kAllToAll;
  int64_t forward = 0;
  int64_t backward = 0;  // and of blocks that run again
};
ExpertMessages ExpertMessagesOf(const Workload& workload,
                                const Workload& of_stage);

// What a stage sends the next of a micro-batch, of each rank: hidden states of
// the tokens, or of its share of them.
Bytes<> SentBetweenStages(const Workload& workload);

// Gradient of a rank's part of a table that the first stage and the last have
// alike, each as its own passes make it; 0 where they do not.
Bytes<> SummedOfTiedTable(const Workload& workload);

}  // namespace trainfare::model
