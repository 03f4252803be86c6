#include "hardware/files/date.h"

#include <algorithm>
#include <charconv>

namespace trainfare::hardware {

std::optional<std::chrono::year_month_day> ParseDate(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') {
    return std::nullopt;
  }
  const auto number = [&](size_t from, size_t count) {
    const std::string_view part = text.substr(from, count);
    int value = 0;
    const bool digits = std::all_of(
        part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits) std::from_chars(part.data(), part.data() + count, value);
    return value;
  };
  const std::chrono::year_month_day date(
      std::chrono::year(number(0, 4)),
      std::chrono::month(static_cast<unsigned>(number(5, 2))),
      std::chrono::day(static_cast<unsigned>(number(8, 2))));
  if (!date.ok() || date.year() < std::chrono::year(1)) return std::nullopt;
  return date;
}

}  // namespace trainfare::hardware
