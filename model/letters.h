#pragma once

// Letters and words of names, whose case does not count.

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

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

// Its words in lower case: what stands between bytes that are no ASCII letter
// or digit.
inline std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char letter : Lowered(name)) {
    const bool of_word =
        (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (of_word && !inside) words.emplace_back();
    if (of_word) words.back() += letter;
    inside = of_word;
  }
  return words;
}

}  // namespace trainfare::model
