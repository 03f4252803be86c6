#pragma once

// Scalars of the files that are written here.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/units.h"

namespace trainfare::calibrate::internal {

// A double-quoted YAML scalar. Bytes that are no UTF-8, as the name of a file
// may have them, become U+FFFD: no reader takes them.
std::string Quoted(std::string_view text);

// Shortest text that reads back as the same number.
inline std::string Seconds(model::Seconds<> time) {
  return fmt::format("{} s", model::ToSeconds(time));
}

}  // namespace trainfare::calibrate::internal
