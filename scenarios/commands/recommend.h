#pragma once

// trainfare recommend: the cheapest (or fastest, or least hungry) instance that
// fits a scenario and meets its limits, and why not the others.

#include "scenarios/commands/recommend_options.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Every instance twice where it has several devices: with all of them, data
// parallel at the scenario's batch a device, and with one; of a global batch
// also with numbers in between, and on several hosts, each with the batch a
// device and the accumulation that are best for it. The whole instance is paid
// for in all cases. A device named in `also` is a candidate without a
// price, and so never the choice.
Report Recommend(const RecommendOptions& options);

}  // namespace trainfare::scenarios
