#pragma once

// Every reader of a file that somebody else may have written, as a function of
// its bytes. A reader refuses them by InputError or takes them; any other
// exception, crash or sanitizer's report is a finding.

#include <span>
#include <string_view>

#include "model/error.h"

namespace trainfare::fuzz {

struct Target {
  std::string_view name;  // and of its folder in tests/fuzz/corpus
  void (*read)(std::string_view bytes);
};
// The readers of the core, and those of the trainer that need no tensors.
std::span<const Target> Targets();

// Reads `bytes`; what is refused is no finding.
inline void Run(const Target& target, std::string_view bytes) {
  try {
    target.read(bytes);
  } catch (const model::InputError&) {
    // Refused with a message: what a reader is for.
  }
}

}  // namespace trainfare::fuzz
