#pragma once

// The loop over the steps of a run, and how it ended.

#include <cstdint>

#include "trainer/record/record.h"
#include "trainer/training/checkpoint_file.h"
#include "trainer/training/feed.h"
#include "trainer/training/options.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {

enum class Ending {
  kDone,
  kStopped,   // asked to, behind a step
  kDiverged,  // the loss is no number: weights are lost, too
  kBroken,    // the loss was one, and its update made weights that are none
};

// Whether the run ended with parameters that are no numbers.
bool WeightsAreLost(Ending ending);

// The steps that the checkpoint leaves, with a sample of each in the record.
Ending TrainSteps(const TrainOptions& options,
                  int64_t steps,
                  const Share& share,
                  Feed& feed,
                  Session& session,
                  CheckpointFile& checkpoint,
                  StepRecord& record);

}  // namespace trainfare::trainer
