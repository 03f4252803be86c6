#pragma once

// What a flag names of the catalogs.

#include <optional>
#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/units.h"

namespace trainfare::scenarios {

// Each throws InputError that begins with the flag, where there is none.
const hardware::Device& FindDevice(std::string_view flag,
                                   const std::string& name);
// Where a family's name is its usual form.
const hardware::Device& FindUsualDevice(std::string_view flag,
                                        const std::string& name);
const hardware::Instance& FindInstance(std::string_view flag,
                                       const std::string& name);
// What --network says; nullopt: it was not given.
std::optional<model::BytesPerSecond<>> NetworkFlag(
    const std::optional<std::string>& text);

}  // namespace trainfare::scenarios
