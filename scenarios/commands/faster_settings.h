#pragma once

// What of a job that fits to change, so that its steps take less time.

#include <optional>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

// The one or two settings that save most, each by itself and by a prediction
// like that of `job`; nullopt: none saves enough to be worth saying.
std::optional<Note> FasterNote(const PredictionTarget& target,
                               const Scenario& scenario,
                               const JobEstimate& job);

}  // namespace trainfare::scenarios
