#pragma once

// A scenario as the YAML that it could have been read from.

#include <cstddef>
#include <string>

#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// Every key with its value, the model by its dimensions, lengths as points of
// their distribution: LoadScenario of it is the same job, whose title, data and
// figures are alike (lengths within 1e-9 of each share). What is usual where it
// is not said (`run`) stays unsaid. Comments count parameters and tokens. Lines
// go beyond `width` columns only with one word or text.
std::string ToYaml(const Scenario& scenario, size_t width = 80);

}  // namespace trainfare::scenarios
