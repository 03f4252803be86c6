#pragma once

// The examples of a run.

#include <vector>

#include "trainer/data/data.h"
#include "trainer/network/pretrained.h"
#include "trainer/training/feed.h"
#include "trainer/training/options.h"

namespace trainfare::trainer {

struct TrainingData {
  std::vector<Example> examples;
  std::vector<Example> evaluation;  // may be empty
};

// Of the files that the options name, or drawn. Throws InputError.
TrainingData ReadData(const TrainOptions& options,
                      const PretrainedConfig& config,
                      const Share& share);

}  // namespace trainfare::trainer
