#pragma once

#include <string_view>

namespace trainfare::scenarios {

// Of this program: "0.2.0".
std::string_view Version();

}  // namespace trainfare::scenarios
