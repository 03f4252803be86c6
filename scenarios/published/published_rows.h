#pragma once

// Every published row beside the answers to it.

#include <cstddef>

#include "scenarios/published/published_result.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// Every row that is predicted; without an answer, why.
Table RowTable(const PublishedResult& result);

// Row `i` of all that is published.
Json RowJson(const PublishedResult& result, size_t i);

}  // namespace trainfare::scenarios
