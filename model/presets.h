#pragma once

// Architectures by name.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace trainfare::model {

// The presets that ship with the tool, sorted by name.
std::span<const Architecture> ArchitecturePresets();
// What else a preset is called, and checkpoints of its architecture, which may
// have been trained for other lengths.
std::vector<std::string_view> AliasesOf(std::string_view preset);
// By exact name or alias.
std::optional<Architecture> TryFindArchitecture(std::string_view name);
// Also as people spell it: letter case, what separates words and the
// organisation before a slash do not count, nor do words of a checkpoint that
// has the same architecture ("meta-llama/Llama-3.1-8B-Instruct"). Sizes count
// to their points ("qwen3-17b" is not Qwen3 1.7B). nullptr where there is none,
// or more than one.
const Architecture* SpelledArchitecture(std::string_view name);
// The same; throws InputError naming the nearest presets.
const Architecture& FindArchitecture(std::string_view name);

}  // namespace trainfare::model
