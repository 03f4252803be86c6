#include "scenarios/job/memory_range.h"

#include <algorithm>
#include <cmath>

#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using calibrate::MemoryFigure;

// Of measured over predicted peaks, in either direction: of what tensors take,
// and of what an allocator keeps for them. Within each are 80 % of the peaks of
// such figures, every source counting alike; of a source that is left out about
// as many are inside what the others make it (docs/results/llm.md, "Widths").
constexpr double kOfTensors = 1.11;
constexpr double kKept = 1.16;

MemoryRange Around(model::Bytes<> predicted, double factor) {
  return {predicted * (1.0 / factor), predicted * factor};
}

}  // namespace

MemoryRange MemoryRangeOf(const model::MemoryEstimate& needed,
                          model::Bytes<> capacity) {
  MemoryRange range = CountedBy(MemoryFigure::kUnstated, needed).range;
  range.high = std::max(std::min(range.high, capacity),
                        Around(needed.total(), kKept).high);
  return range;
}

bool HasRoom(const model::MemoryEstimate& needed, model::Bytes<> capacity) {
  return needed.total() + needed.of_other_streams + needed.in_gaps <=
             capacity &&
         MemoryRangeOf(needed, capacity).high <= capacity;
}

CountedMemory CountedBy(MemoryFigure figure,
                        const model::MemoryEstimate& estimate) {
  // An allocator does not see the context, which is of the driver and the
  // framework.
  const model::Bytes<> tensors = estimate.without_context();
  const model::Bytes<> kept = estimate.of_other_streams + estimate.in_gaps;
  const model::Bytes<> used = estimate.total() + kept;
  switch (figure) {
    case MemoryFigure::kAllocated:
      return {tensors, Around(tensors, kOfTensors)};
    case MemoryFigure::kReserved:
    case MemoryFigure::kOutOfMemory:
      return {tensors + kept, Around(tensors + kept, kKept)};
    case MemoryFigure::kUsed:
      return {used, Around(used, kKept)};
    case MemoryFigure::kUnstated:
      // In the middle of the least and the most of them, between the ends of
      // their intervals.
      return {model::Byte(std::sqrt(tensors.base() * used.base())),
              {Around(tensors, kOfTensors).low, Around(used, kKept).high}};
  }
  ENSURE(false, "a figure without a count");
}

}  // namespace trainfare::scenarios
