#pragma once

// Days and times as text, all of UTC.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// A day of the calendar, written 2026-05-20; nullopt: anything else.
std::optional<std::chrono::year_month_day> ParseDate(std::string_view text);

std::chrono::sys_seconds Now();
// "2026-11-23T18:01:31Z".
std::string TimeText(std::chrono::sys_seconds time);
// nullopt: written in another way, or no such time.
std::optional<std::chrono::sys_seconds> TimeFromText(std::string_view text);

}  // namespace trainfare::hardware
