#pragma once

// What devices were measured to hold, or not to hold, beside what predict says
// of the same runs. Internal to scenarios/, for .cc files only.

#include <vector>

#include "calibrate/records/memory_observation.h"
#include "scenarios/report/output.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// Adds to the report a table of the errors by group, a line of how many
// verdicts ("fits", "runs out") were right, and "memory" to the JSON.
void AppendMemory(const std::vector<calibrate::MemoryObservation>& memory,
                  GroupBy group_by,
                  Report& report,
                  Json& json);

}  // namespace trainfare::scenarios
