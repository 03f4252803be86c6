#pragma once

// trainfare predict: one scenario on one device or instance.

#include "scenarios/commands/predict_options.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

Report Predict(const PredictOptions& options);

}  // namespace trainfare::scenarios
