#pragma once

// Devices by names as people spell them: "H100 PCIe", "RTX4090", "A100-SXM-80GB",
// "NVIDIA L4 24GB". What tells no two devices apart does not count: letter case
// and what separates words, makers and their series ("GeForce", "Instinct"),
// memory that is the device's own. A name that several devices would answer to
// ("A100 80GB") is none's.

#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"

namespace trainfare::hardware {

// The one device of that spelling; nullptr where there is none, or several.
const Device* SpelledAlike(const std::vector<Device>& devices,
                           std::string_view name);

// Names of those that it may mean, at most six: their spellings begin with it,
// and have its memory where it says one. Views of the devices' names.
std::vector<std::string_view> PerhapsMeant(const std::vector<Device>& devices,
                                           std::string_view name);

}  // namespace trainfare::hardware
