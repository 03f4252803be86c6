#pragma once

// An error summary as JSON. Internal to scenarios/, for .cc files only.

#include "scenarios/error_summary.h"
#include "scenarios/internal/result_json.h"

namespace trainfare::scenarios {

Json ToJson(const ErrorSummary& summary);

}  // namespace trainfare::scenarios
