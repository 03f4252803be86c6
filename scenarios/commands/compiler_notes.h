#pragma once

// What is said of a device's compiler: how long it takes, what of it nobody
// measured, and whether its host has the memory for it.

#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

void AddCompileNotes(const PredictionTarget& target,
                     const std::vector<JobEstimate>& jobs,
                     const Scenario& scenario,
                     std::vector<Note>& notes);

}  // namespace trainfare::scenarios
