#pragma once

// A whole text file at once, and the lines of a text.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// What a person writes by hand: YAML, a config.json.
inline constexpr size_t kLargestByHand = size_t{16} << 20;

// Throws InputError "path: ..." where it cannot be read, with the reason;
// `kind` ("a CSV file") is what a folder in its place is not. More than `most`
// bytes are refused, and more than 256 MiB of a pipe or a device, which may
// never end.
std::string ReadTextFile(const std::string& path,
                         std::string_view kind,
                         size_t most = size_t{4} << 30);

// Throws InputError "path: cannot be opened: .." where nothing has the name.
void RequireThere(const std::string& path);

// Whether a name is of what a program has open, by its number or as standard
// input ("/dev/fd/63"): for nobody else, and at no other time, is it the same.
bool IsOpenFile(std::string_view path);

// A file that another file names, relative to its folder: only regular ones of
// at most 16 MiB, links followed. Throws InputError without a position.
struct NamedFile {
  std::string path;
  // Within that folder. What is elsewhere is none of the other file's business:
  // not a line of it may land in a message.
  bool is_beside = false;
};
NamedFile FileNamedIn(const std::string& of, const std::string& named);
// The same, only within that folder.
std::string PathBeside(const std::string& of, const std::string& named);

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
