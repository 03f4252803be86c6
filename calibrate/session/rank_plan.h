#pragma once

// What to measure over several ranks.

#include <cstdint>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/session/plan.h"

namespace trainfare::calibrate {

// Sizes of messages of which one of `collectives` is not among `timed`: of the
// small first bucket of gradients, of those behind it, and of one that a large
// embedding makes. `beside`: each is timed beside computation, too.
std::vector<int64_t> SizesToTime(
    int64_t ranks,
    const std::vector<MeasuredCollective>& timed,
    const std::vector<model::Collective>& collectives,
    bool beside);

// Chooses, of what one rank ran, the run of each model that is nearest to as
// many tokens as fill a device, without those that so many ranks ran; the
// smallest model first. `slower`: how much longer a step is expected to take
// than that of one rank. `shard`: what the ranks divide among them.
std::vector<PlannedRun> RunsOverRanks(const std::vector<MeasuredRun>& runs,
                                      int64_t ranks,
                                      int64_t slower,
                                      model::Shard shard = model::Shard::kNone);

}  // namespace trainfare::calibrate
