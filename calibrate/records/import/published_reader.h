#pragma once

// Files of published measurements (calibrate/records/import/published.h).

#include <string>

#include "calibrate/records/import/published.h"

namespace trainfare::calibrate {

// Reads every *.yaml of a folder that has a `schema`; others are not of
// published figures. Throws InputError with file:line:col.
Published LoadPublished(const std::string& directory);

// Throws InputError where a file is none of published figures.
void RequirePublished(const std::string& path);

}  // namespace trainfare::calibrate
