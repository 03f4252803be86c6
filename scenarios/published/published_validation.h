#pragma once

// trainfare validate scenarios/published/: what the product answers for
// published runs, as shipped and left out, beside what was printed.

#include "scenarios/report/output.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// Throws UsageError for a protocol that these data do not allow.
Report ValidatePublished(const ValidateOptions& options);

}  // namespace trainfare::scenarios
