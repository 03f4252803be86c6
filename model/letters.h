#pragma once

// Letters of names, whose case does not count.

#include <cctype>
#include <string>
#include <string_view>

namespace trainfare::model {

// ASCII letters in lower case, every other byte as it is.
inline std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered) {
    letter =
        static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lowered;
}

}  // namespace trainfare::model
