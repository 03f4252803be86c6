#pragma once

// Files of published measurements (calibrate/records/import/published.h).

#include <string>

#include "calibrate/records/import/published.h"

namespace trainfare::calibrate {

// Reads every *.yaml of a folder. Throws InputError with file:line:col.
Published LoadPublished(const std::string& directory);

}  // namespace trainfare::calibrate
