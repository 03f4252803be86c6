#pragma once

// Devices by names as people spell them: "H100 PCIe", "RTX4090", "A100-SXM-80GB",
// "NVIDIA L4 24GB". What tells no two devices apart does not count: letter case
// and what separates words, makers and their series ("GeForce", "Instinct"),
// memory that is the device's own. A name that several devices would answer to
// ("A100 SXM4") is none's.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainfare::hardware {

// What one device answers to; views of the device.
struct DeviceNames {
  std::string_view name;
  std::vector<std::string_view> others;  // reported, aliases
  model::Bytes<> memory;
};

// The place of the one device of that spelling; nullopt where there is none, or
// several.
std::optional<size_t> SpelledAlike(const std::vector<DeviceNames>& devices,
                                   std::string_view name);

// The same of a family's name, of which one device alone is known, in whatever
// form it has: "P100" of a P100 on PCIe.
std::optional<size_t> OnlyForm(const std::vector<DeviceNames>& devices,
                               std::string_view name);

// Names of those that it may mean, at most six: their spellings begin with it,
// and have its memory where it says one; else those that it goes on from ("RTX
// 4060 Laptop").
std::vector<std::string_view> PerhapsMeant(
    const std::vector<DeviceNames>& devices, std::string_view name);

// Where `name` is that of a family, of which the device called `taken` is one:
// the other ones, of its memory where it says one.
std::vector<std::string_view> OtherForms(
    const std::vector<DeviceNames>& devices,
    std::string_view taken,
    std::string_view name);

}  // namespace trainfare::hardware
