#include "scenarios/job/memory_range.h"

#include <cmath>

#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

// Standard deviation of log(measured / predicted) around 0, each source of
// measured peaks counted once: most of it is between sources, which count what
// an allocator keeps and what software adds in their own ways.
constexpr double kMemorySigma = 0.3;

}  // namespace

MemoryRange MemoryRangeOf(model::Bytes<> predicted) {
  const double factor = std::exp(calibrate::kNormalQuantile90 * kMemorySigma);
  return {predicted * (1.0 / factor), predicted * factor};
}

}  // namespace trainfare::scenarios
