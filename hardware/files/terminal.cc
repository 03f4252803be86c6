#include "hardware/files/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "hardware/files/foreign_text.h"

namespace trainfare::hardware {
namespace {

// A narrower one is as good as none: words would stand alone.
constexpr size_t kNarrowest = 20;

// The front of a word for a line of `width` columns: up to a mark where its
// reader sees that it goes on, if that is not far back.
std::string_view FrontOf(std::string_view word, size_t width) {
  const std::string_view most = CutToWidth(word, width);
  const size_t mark = most.find_last_of("/-_,.:|");
  return mark != std::string_view::npos && 2 * (mark + 1) > most.size()
             ? most.substr(0, mark + 1)
             : most;
}

}  // namespace

std::optional<size_t> TerminalWidth(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) == 0 ||
      ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return std::nullopt;
  }
  return std::max<size_t>(size.ws_col, kNarrowest);
}

std::vector<std::string> LinesOf(std::string_view text,
                                 size_t width,
                                 std::string_view indent,
                                 LongWords long_words) {
  std::vector<std::string> lines;
  std::string line;
  bool has_word = false;
  const auto finish = [&] {
    lines.push_back(line);
    line = indent;
    has_word = false;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (has_word && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      finish();
    }
    if (has_word) line += ' ';
    while (long_words == LongWords::kBreak &&
           DisplayWidth(line) + DisplayWidth(word) > width) {
      const size_t used = DisplayWidth(line);
      const std::string_view front =
          FrontOf(word, width > used ? width - used : 1);
      if (front.empty()) break;  // wider than the line by itself
      line += front;
      word.remove_prefix(front.size());
      finish();
    }
    line += word;
    has_word = true;
  }
  lines.push_back(line);
  return lines;
}

std::string Wrapped(std::string_view text,
                    std::optional<size_t> width,
                    std::string_view indent) {
  const std::string shown = OneLine(text, std::string::npos);
  if (!width || DisplayWidth(shown) <= *width) return shown + "\n";
  std::string out;
  for (const std::string& line : LinesOf(shown, *width, indent)) {
    out += line + "\n";
  }
  return out;
}

}  // namespace trainfare::hardware
