#pragma once

// Flags that say a time or an amount.

#include <string_view>

#include "model/units.h"

namespace trainfare::scenarios {

// "4h", "20usd" of the command line. Throw InputError that names `flag`.
model::Seconds<> TimeFlag(std::string_view flag, std::string_view text);
model::Usd<> MoneyFlag(std::string_view flag, std::string_view text);

}  // namespace trainfare::scenarios
