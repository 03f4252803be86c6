#pragma once

// What an answer says of itself: what was asked, and when.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::scenarios {

struct Origin {
  // The command and its options, for `replay`; may be empty.
  std::vector<std::string> arguments;
  // What counts as now: for the answer's date and the age of prices.
  std::chrono::sys_seconds time;
};

// "2026-11-23T18:01:31Z".
std::string TimeText(std::chrono::sys_seconds time);
// nullopt: written in another way, or no such time.
std::optional<std::chrono::sys_seconds> TimeFromText(std::string_view text);

}  // namespace trainfare::scenarios
