#pragma once

// Error summaries and choices as JSON. Internal to scenarios/, for .cc files
// only.

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/workload.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/choice_validation.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

Json ToJson(const ErrorSummary& summary);
// One for each group, with its name.
Json GroupList(const ErrorGroups& groups);
// The keys of a summary, which a limit may name.
std::vector<std::string> SummaryFigures();

// The first keys of a row: which run it is of, and what was taken of it.
Json RunJson(const std::string& label,
             const hardware::Device& device,
             int64_t devices,
             const model::Workload& workload);

Json ToJson(const std::vector<MeasuredChoice>& choices);
// The first keys of every answer of validate.
Json ValidationHead(const ValidateOptions& options,
                    const std::vector<PriceSource>& prices = {});

}  // namespace trainfare::scenarios
