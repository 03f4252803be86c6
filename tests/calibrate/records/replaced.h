#pragma once

// A text with a part of it replaced, for tests of what reads it.

#include <doctest/doctest.h>

#include <string>

namespace trainfare::calibrate {

inline std::string Replaced(std::string text,
                            const std::string& from,
                            const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace trainfare::calibrate
