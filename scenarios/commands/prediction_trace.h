#pragma once

// One predicted step as spans of time.

#include <vector>

#include "scenarios/commands/prediction_report.h"
#include "scenarios/report/trace.h"

namespace trainfare::scenarios {

// Every prediction that fits is a process: its computation by phase and, within
// a phase, by kind of kernel, or by what takes the time where the device's
// model has no kernels; beside it what the ranks send each other, hidden and
// exposed.
std::vector<TraceProcess> PredictionTrace(
    const std::vector<Prediction>& predictions);

}  // namespace trainfare::scenarios
