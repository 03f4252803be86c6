#include "hardware/files/date.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace trainfare::hardware {

using std::chrono::sys_days;
using std::chrono::sys_seconds;

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

sys_seconds Now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

std::string TimeText(sys_seconds time) {
  // Not through the clock's own type, whose nanoseconds end in 2262.
  const auto since_1970 =
      static_cast<std::time_t>(time.time_since_epoch().count());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(since_1970));
}

// The standard library's own parser is not in GCC 12.
std::optional<sys_seconds> TimeFromText(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto day = ParseDate(text.substr(0, 10));
  if (!day) return std::nullopt;
  const auto two_digits = [&](size_t at) {
    return (text[at] - '0') * 10 + (text[at + 1] - '0');
  };
  const std::array<int, 3> clock = {
      two_digits(11), two_digits(14), two_digits(17)};
  if (clock[0] > 23 || clock[1] > 59 || clock[2] > 59) return std::nullopt;
  return sys_seconds(sys_days(*day)) + std::chrono::hours(clock[0]) +
         std::chrono::minutes(clock[1]) + std::chrono::seconds(clock[2]);
}

}  // namespace trainfare::hardware
