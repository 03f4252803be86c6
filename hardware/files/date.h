#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace trainfare::hardware {

// A day of the calendar, written 2026-05-20; nullopt: anything else.
std::optional<std::chrono::year_month_day> ParseDate(std::string_view text);

}  // namespace trainfare::hardware
