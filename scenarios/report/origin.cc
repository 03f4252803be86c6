#include "scenarios/report/origin.h"

#include <fmt/format.h>

#include <array>

#include "hardware/files/date.h"

namespace trainfare::scenarios {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

std::string TimeText(sys_seconds time) {
  const sys_days midnight = std::chrono::floor<days>(time);
  const std::chrono::year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(time - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                     static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()),
                     clock.hours().count(),
                     clock.minutes().count(),
                     clock.seconds().count());
}

std::optional<sys_seconds> TimeFromText(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto day = hardware::ParseDate(text.substr(0, 10));
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

}  // namespace trainfare::scenarios
