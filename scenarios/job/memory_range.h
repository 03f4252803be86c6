#pragma once

// How sure the memory of a job is.

#include "model/units.h"

namespace trainfare::scenarios {

struct MemoryRange {
  model::Bytes<> low;
  model::Bytes<> high;
};
// The 80 % interval of what was predicted, by what peaks that were measured
// came to (docs/models/memory.md); on every device that of the measured ones,
// which were GPUs.
MemoryRange MemoryRangeOf(model::Bytes<> predicted);

}  // namespace trainfare::scenarios
