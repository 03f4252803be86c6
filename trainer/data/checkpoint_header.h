#pragma once

// What a checkpoint says beside its tensors: how far the run was, and what must
// be the same for it to go on as if unbroken.

#include <cstdint>
#include <map>
#include <string>

#include "trainer/data/safetensors.h"

namespace trainfare::trainer {

struct CheckpointHeader {
  int64_t step = 0;             // done, skipped ones included
  int64_t epoch = 0;            // of the data, and
  int64_t position = 0;         // micro-batches of it consumed
  uint64_t dropout_calls = 0;   // masks drawn
  int loss_scale_exponent = 0;  // of fp16: a power of two
  int64_t good_steps = 0;       // since it changed
  int64_t skipped_steps = 0;
};

// The metadata of a file; `run`: key and value.
std::map<std::string, std::string> ToMetadata(
    const CheckpointHeader& header,
    const std::map<std::string, std::string>& run);

// Throws InputError where the file is no checkpoint, is one of another run, or
// has counts that no run has.
CheckpointHeader ReadCheckpointHeader(
    const SafetensorsFile& file, const std::map<std::string, std::string>& run);

}  // namespace trainfare::trainer
