#pragma once

// What the page of a prediction draws.

#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/report/chart.h"

namespace trainfare::scenarios {

// Charts of one job that fits: step, roofline, memory, scaling over devices,
// and what the answer hangs on. A chart that the device or its links do not
// allow is left out.
std::vector<Chart> PredictionCharts(const PredictionTarget& target,
                                    const Scenario& scenario,
                                    const JobEstimate& job);

}  // namespace trainfare::scenarios
