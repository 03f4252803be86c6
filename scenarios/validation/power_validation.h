#pragma once

// What devices drew in runs whose steps are compared, beside what predict says.
// Internal to scenarios/, for .cc files only.

#include "scenarios/report/output.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/options.h"
#include "scenarios/validation/step_validation.h"

namespace trainfare::scenarios {

// Adds to the report a table of the errors by group, of power and of energy
// (power times time, both predicted, beside both measured), and "power" to the
// JSON; nothing where no run has a power.
void AppendPower(const StepValidation& validation,
                 const ValidateOptions& options,
                 Report& report,
                 Json& json);

}  // namespace trainfare::scenarios
