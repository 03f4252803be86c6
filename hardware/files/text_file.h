#pragma once

// A whole text file at once, and the lines of a text.

#include <algorithm>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// Throws InputError "path: ..." where it cannot be read, with the reason;
// `kind` ("a CSV file") is what a folder in its place is not.
std::string ReadTextFile(const std::string& path, std::string_view kind);

// Calls take(line) for each line of `text`, without its newline; the last may
// have none.
template <class Take>
void ForEachLine(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace trainfare::hardware
