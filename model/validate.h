#pragma once

#include <cstdint>

#include "model/workload.h"

namespace trainfare::model {

// Throws InputError when a count, alone or multiplied, is out of range, hidden
// is not a multiple of heads, or the length passes the model's positions.
void Validate(const Workload& workload);

// What an update within the pass backward excludes, of ranks that are known.
void RequireUpdateInBackward(const Workload& workload);

// A batch up to which no sum of a step leaves 64 bits, all else as it is; at
// least 1.
int64_t LargestCountableBatch(const Workload& workload);

}  // namespace trainfare::model
