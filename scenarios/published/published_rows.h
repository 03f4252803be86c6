#pragma once

// Every published row beside the answers to it.

#include <cstddef>
#include <string>

#include "scenarios/published/published_result.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// An answer as a person reads it, with its interval.
std::string PublishedAnswerText(const calibrate::PublishedRow& row,
                                const PublishedAnswer& answer);

// Every row that is predicted; without an answer, why.
Table RowTable(const PublishedResult& result);

// Row `i` of all that is published.
Json RowJson(const PublishedResult& result, size_t i);

}  // namespace trainfare::scenarios
