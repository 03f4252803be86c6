#pragma once

// What the page of a recommendation draws of its candidates.

#include <vector>

#include "scenarios/commands/candidates.h"
#include "scenarios/report/chart.h"

namespace trainfare::scenarios {

// The best of ranked candidates with their intervals, and cost over time of all
// that are viable with their Pareto front.
std::vector<Chart> CandidateCharts(const std::vector<Candidate>& candidates,
                                   Objective objective);

}  // namespace trainfare::scenarios
