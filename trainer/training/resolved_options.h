#pragma once

// What the options of a run come to: its workload, steps, learning rates.

#include <cstdint>

#include "model/architecture.h"
#include "model/workload.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/training/feed.h"
#include "trainer/training/options.h"

namespace trainfare::trainer {

// With the sequences of a batch that was given in tokens, as a record says
// them: of the longest length. Throws InputError where options exclude each
// other.
TrainOptions Resolved(TrainOptions options);

// Throws InputError where it is no workload.
model::Workload WorkloadOf(const TrainOptions& options,
                           const model::Architecture& architecture,
                           const Share& share);

OptimizerOptions OptimizerOf(const TrainOptions& options);

// Ranks draw different masks, the first those of a run alone.
uint64_t DropoutSeed(const TrainOptions& options, const Share& share);

// Of the whole run, those before a checkpoint included.
int64_t StepsOf(const TrainOptions& options, const Feed& feed);

// Linear warm-up, then linear decay to 0: the schedule of BERT fine-tuning.
double LearningRate(const TrainOptions& options, int64_t step, int64_t steps);

}  // namespace trainfare::trainer
