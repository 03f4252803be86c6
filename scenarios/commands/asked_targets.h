#pragma once

// The devices and instances that the flags of predict ask about.

#include <vector>

#include "model/workload.h"
#include "scenarios/commands/predict_options.h"
#include "scenarios/commands/prediction_target.h"

namespace trainfare::scenarios {

// One a device, or one an instance, for a job that is spread like `parallel`.
// Throws InputError or UsageError that names the flag.
std::vector<PredictionTarget> AskedTargets(PredictOptions options,
                                           const model::Parallel& parallel);

}  // namespace trainfare::scenarios
