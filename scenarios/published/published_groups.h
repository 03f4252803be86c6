#pragma once

// The errors of published rows by group, beside what is asked of them.

#include <cstdint>

#include "scenarios/published/published_result.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// How many limits are set, and how many of them are met.
struct LimitCount {
  int64_t set = 0;
  int64_t met = 0;
};

// Groups under both protocols, and the order of devices. `list` gets the same
// as JSON.
Table GroupTable(const PublishedResult& result, Json& list, LimitCount& limits);

// What follows from printed figures alone, a row a group.
Table CheckTable(const PublishedResult& result, Json& list);

}  // namespace trainfare::scenarios
