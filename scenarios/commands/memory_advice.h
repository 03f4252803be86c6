#pragma once

// What of a job that does not fit to change, so that it does.

#include <string>
#include <vector>

#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// The fewest changes of the command line with which `scenario` fits: of how
// all of it is trained, and with adapters in its place. A line each, what
// serves nothing left out; empty: none of these changes is enough.
std::vector<std::string> MemoryAdvice(const Scenario& scenario,
                                      const PredictionTarget& target);

}  // namespace trainfare::scenarios
