#pragma once

// Architectures by name.

#include <optional>
#include <span>
#include <string_view>

#include "model/architecture.h"

namespace trainfare::model {

// The presets that ship with the tool, sorted by name.
std::span<const Architecture> ArchitecturePresets();
// By exact name or alias; throws InputError naming the nearest presets.
const Architecture& FindArchitecture(std::string_view name);
std::optional<Architecture> TryFindArchitecture(std::string_view name);

}  // namespace trainfare::model
