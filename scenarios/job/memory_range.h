#pragma once

// How sure the memory of a job is.

#include "calibrate/records/memory_observation.h"
#include "model/memory_estimate.h"
#include "model/units.h"

namespace trainfare::scenarios {

struct MemoryRange {
  model::Bytes<> low;
  model::Bytes<> high;
};
// The 80 % interval of a peak that is read on a device of such a capacity, by
// what peaks that were measured came to (docs/models/memory.md); on every device
// that of the measured ones, which were GPUs. Nobody says what will be read: it
// goes from what tensors take to what an allocator keeps for them, which is no
// more than there is, unless tensors alone may need more.
MemoryRange MemoryRangeOf(const model::MemoryEstimate& needed,
                          model::Bytes<> capacity);

// Whether there is room for it by the whole interval, and for what an allocator
// holds besides, in gaps and of other streams.
bool HasRoom(const model::MemoryEstimate& needed, model::Bytes<> capacity);

// What of an estimate one figure of a measured peak counts, and its 80 %
// interval: narrower of what tensors take than of what an allocator keeps.
struct CountedMemory {
  model::Bytes<> predicted;
  MemoryRange range;
};
CountedMemory CountedBy(calibrate::MemoryFigure figure,
                        const model::MemoryEstimate& estimate);

}  // namespace trainfare::scenarios
