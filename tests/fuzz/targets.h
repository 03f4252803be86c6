#pragma once

// Every reader of a file that somebody else may have written, as a function of
// its bytes. A reader refuses them by InputError or takes them; any other
// exception, crash or sanitizer's report is a finding.

#include <span>
#include <string_view>

namespace trainfare::fuzz {

struct Target {
  std::string_view name;  // and of its folder in tests/fuzz/corpus
  void (*read)(std::string_view bytes);
};
std::span<const Target> Targets();

// Reads `bytes`; what is refused is no finding.
void Run(const Target& target, std::string_view bytes);

}  // namespace trainfare::fuzz
