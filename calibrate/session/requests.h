#pragma once

// What the trainer is asked for, in its own words (docs/guide/measurements.md).

#include <string>

#include "calibrate/session/plan.h"
#include "model/workload.h"

namespace trainfare::calibrate::internal {

// One line of a plan; the run ends early after `max_seconds`.
std::string RequestLine(const PlannedRun& run, double max_seconds);

// "bert-tiny fp32, batch 8, length 64", for people.
std::string RunWords(const model::Workload& workload);

}  // namespace trainfare::calibrate::internal
