#pragma once

// What was measured nearest to a question, and how right the fit was there.

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/fit/fit.h"
#include "model/workload.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// At most so many of the fit's runs whose place is known, the nearest first: by
// how alike the formula's error is there (calibrate/fit/discrepancy.h).
std::vector<const calibrate::FittedRun*> NearestRuns(
    const calibrate::Fit& fit, const model::Workload& workload, size_t most);

// The same as a table, with what a fit to all others says of each; nullopt: no
// run has a place.
std::optional<Table> NearestRunTable(const calibrate::Fit& fit,
                                     const model::Workload& workload);

}  // namespace trainfare::scenarios
