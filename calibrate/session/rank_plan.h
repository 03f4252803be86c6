#pragma once

// What to measure over several ranks.

#include <cstdint>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/session/plan.h"

namespace trainfare::calibrate {

// Sizes of all-reduces that are not among `timed`: of the small first bucket of
// gradients, of those behind it, and of one that a large embedding makes.
// `beside`: each is timed beside computation, too.
std::vector<int64_t> SizesToTime(int64_t ranks,
                                 const std::vector<MeasuredAllReduce>& timed,
                                 bool beside);

// Chooses, of what one rank ran, the run of each model that is nearest to as
// many tokens as fill a device, without those that so many ranks ran; the
// smallest model first. `slower`: how much longer a step is expected to take
// than that of one rank.
std::vector<PlannedRun> RunsOverRanks(const std::vector<MeasuredRun>& runs,
                                      int64_t ranks,
                                      int64_t slower);

}  // namespace trainfare::calibrate
