#pragma once

// Architectures by name.

#include <optional>
#include <span>
#include <string_view>

#include "model/architecture.h"

namespace trainfare::model {

// The presets that ship with the tool, sorted by name.
std::span<const Architecture> ArchitecturePresets();
// By exact name or alias.
std::optional<Architecture> TryFindArchitecture(std::string_view name);
// Also as people spell it: letter case, what separates words and the
// organisation before a slash do not count, nor do words of a checkpoint that
// has the same architecture ("meta-llama/Llama-3.1-8B-Instruct"). nullptr where
// there is none.
const Architecture* SpelledArchitecture(std::string_view name);
// The same; throws InputError naming the nearest presets.
const Architecture& FindArchitecture(std::string_view name);

}  // namespace trainfare::model
