#pragma once

// trainfare diff: what moved between two saved answers.

#include <string>

#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Both of predict or both of recommend, as `--format json` wrote them. Rows are
// matched by device, instance and setting; what is the same in all rows of both
// files, or has one value in each, tells nothing apart and is left out of it.
// Throws InputError where a file is no such answer or no row has its match.
Report Diff(const std::string& before,
            const std::string& after,
            const Origin& origin = {});

// Adds to an answer of predict or recommend what moved since the one that was
// saved. Throws InputError as Diff does.
void AddBaseline(const std::string& baseline, Report& report);

}  // namespace trainfare::scenarios
