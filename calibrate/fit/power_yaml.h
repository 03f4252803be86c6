#pragma once

// The power of a fit, as it stands in its file under `power`.

#include <optional>
#include <string>

#include "calibrate/fit/power.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::calibrate::internal {

// Nothing where there is none.
void WritePower(const std::optional<FittedPower>& power, std::string& out);
std::optional<FittedPower> ReadPower(const hardware::Reader& root);

}  // namespace trainfare::calibrate::internal
