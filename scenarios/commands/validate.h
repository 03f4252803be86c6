#pragma once

// trainfare validate: predictions beside what was measured.

#include "scenarios/report/output.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// Exit code 4 when a limit is passed, 1 when no row could be predicted.
Report Validate(const ValidateOptions& options);

}  // namespace trainfare::scenarios
