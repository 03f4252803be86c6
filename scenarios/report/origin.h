#pragma once

// What an answer says of itself: what was asked, and when.

#include <chrono>
#include <string>
#include <vector>

namespace trainfare::scenarios {

struct Origin {
  // The command and its options, for `replay`; may be empty.
  std::vector<std::string> arguments;
  // What counts as now: for the answer's date and the age of prices.
  std::chrono::sys_seconds time;
};

}  // namespace trainfare::scenarios
