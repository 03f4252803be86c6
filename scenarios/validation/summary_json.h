#pragma once

// An error summary as JSON. Internal to scenarios/, for .cc files only.

#include "scenarios/report/result_json.h"
#include "scenarios/validation/error_summary.h"

namespace trainfare::scenarios {

Json ToJson(const ErrorSummary& summary);

}  // namespace trainfare::scenarios
