#pragma once

// Other names of the presets: short ones, and those of checkpoints that have
// the same architecture.

#include <cstdint>
#include <span>
#include <string_view>

namespace trainfare::model {

struct PresetAlias {
  std::string_view name;
  std::string_view preset;
  // Of a checkpoint that was trained for other lengths, which changes nothing
  // else of it; 0: the preset's.
  int64_t positions = 0;
};

// Without the words that SpelledArchitecture passes over ("-instruct").
std::span<const PresetAlias> PresetAliases();

}  // namespace trainfare::model
