#pragma once

// Scalars of the files that are written here.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/units.h"

namespace trainfare::calibrate::internal {

// A double-quoted YAML scalar.
inline std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Shortest text that reads back as the same number.
inline std::string Seconds(model::Seconds<> time) {
  return fmt::format("{} s", model::ToSeconds(time));
}

}  // namespace trainfare::calibrate::internal
