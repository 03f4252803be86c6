#include "hardware/files/redrawn_line.h"

#include <string_view>

#include "hardware/files/foreign_text.h"

namespace trainfare::hardware {
namespace {

constexpr size_t kMostColumns = 79;

}  // namespace

void RedrawnLine::Draw(const std::string& text) {
  const std::string_view line = CutToWidth(text, kMostColumns);
  const size_t width = DisplayWidth(line);
  const size_t rest = drawn_ > width ? drawn_ - width : 0;
  *out_ << '\r' << line << std::string(rest, ' ') << std::flush;
  drawn_ = width;
}

void RedrawnLine::Clear() {
  if (drawn_ == 0) return;
  *out_ << '\r' << std::string(drawn_, ' ') << '\r' << std::flush;
  drawn_ = 0;
}

}  // namespace trainfare::hardware
