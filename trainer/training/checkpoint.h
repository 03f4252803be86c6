#pragma once

// A run of training on disk, to go on from: weights, optimizer state, dropout
// and data order, as one safetensors file.

#include <cstdint>
#include <map>
#include <string>

#include "trainer/network/transformer.h"
#include "trainer/optimizer/loss_scaler.h"
#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

struct Checkpoint {
  // What must be the same for the run to go on as if unbroken: key, value.
  std::map<std::string, std::string> run;
  int64_t step = 0;            // done, skipped ones included
  int64_t epoch = 0;           // of the data, and
  int64_t position = 0;        // micro-batches of it consumed
  uint64_t dropout_calls = 0;  // masks drawn
  LossScale loss_scale;        // of fp16
};

// Written beside `path`, flushed to the disk, then renamed: a run that is
// killed leaves the last checkpoint whole.
void SaveCheckpoint(const std::string& path,
                    const Checkpoint& checkpoint,
                    const Transformer& transformer,
                    const Optimizer& optimizer);

// Fills transformer and optimizer. Throws InputError where the file is cut
// short or of another run; nothing is changed then.
Checkpoint LoadCheckpoint(const std::string& path,
                          const std::map<std::string, std::string>& run,
                          const Transformer& transformer,
                          Optimizer& optimizer);

}  // namespace trainfare::trainer
