#pragma once

// Scalars of the YAML files that are written here.

#include <string>
#include <string_view>

namespace trainfare::hardware {

// A double-quoted YAML scalar. Bytes that are no UTF-8, as the name of a file
// may have them, become U+FFFD: no reader takes them.
std::string Quoted(std::string_view text);

}  // namespace trainfare::hardware
