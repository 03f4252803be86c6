#pragma once

// What the name of a system says of the devices in it.

#include <string>
#include <string_view>

namespace trainfare::calibrate {

// The name of a device of the catalog that `system` names while it does not
// name `device`, a catalog's name, itself: "4xA4000" of an RTX 3090. Names are
// compared by their models' numbers, three digits or more with the letters
// before them. Empty: none.
std::string OtherDeviceNamed(std::string_view system, std::string_view device);

}  // namespace trainfare::calibrate
