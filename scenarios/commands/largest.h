#pragma once

// predict --largest: the largest batch, length or model that memory holds, all
// else as asked.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

enum class Largest { kBatch, kLength, kModel };
Largest LargestFromText(std::string_view text);  // throws UsageError

// The largest batch, length or place among the presets of its family that fits,
// all else as asked; 0: none does.
int64_t LargestOf(Largest what,
                  const Scenario& scenario,
                  const PredictionTarget& target);

// The answer with the job that fits and the next one, which does not: both are
// asked of the same memory model as every prediction. Models are the presets of
// the scenario's family, by their parameters. Exit code 3 where not even the
// smallest fits.
Report LargestReport(Largest what,
                     const Scenario& scenario,
                     const PredictionTarget& target,
                     const Origin& origin);

}  // namespace trainfare::scenarios
