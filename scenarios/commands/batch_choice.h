#pragma once

// By which batch, accumulation and precision a place runs a job best.

#include <vector>

#include "scenarios/commands/candidates.h"
#include "scenarios/commands/obstacles.h"
#include "scenarios/commands/recommend_options.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// The best of `jobs` there, the scenario once for every batch and precision to
// choose from; of a global batch, and of a batch that is too large, of their
// cuts. `memo` is of the place's device.
Candidate BestAt(const Offer& offer,
                 const std::vector<Scenario>& jobs,
                 const RecommendOptions& options,
                 DeviceMemo& memo);

}  // namespace trainfare::scenarios
