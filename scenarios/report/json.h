#pragma once

// JSON whose keys stand in the order in which they were set, as all answers
// have it. Includes the JSON library, so for .cc files only.

#include <nlohmann/json.hpp>

namespace trainfare::scenarios {

using Json = nlohmann::ordered_json;

}  // namespace trainfare::scenarios
