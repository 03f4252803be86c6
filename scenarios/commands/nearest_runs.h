#pragma once

// What was measured nearest to a question, and how right the fit was there.

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/fit/fit.h"
#include "model/workload.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// A run, and the fit that has it.
struct NearRun {
  const calibrate::Fit* fit = nullptr;
  const calibrate::FittedRun* run = nullptr;
};

// At most so many of the fits' runs whose place is known, the nearest first: by
// how alike the formula's error is there (calibrate/fit/discrepancy.h).
std::vector<NearRun> NearestRuns(const std::vector<const calibrate::Fit*>& fits,
                                 const model::Workload& workload,
                                 size_t most);

// The same as a table, with what a fit to all others says of each; nullopt: no
// run has a place.
std::optional<Table> NearestRunTable(const calibrate::Fit& fit,
                                     const model::Workload& workload);

// Where a device has no fit: those of all devices of its kind that have one.
std::optional<Table> NearestRunsOfKind(hardware::DeviceKind kind,
                                       const model::Workload& workload);

}  // namespace trainfare::scenarios
