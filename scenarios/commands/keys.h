#pragma once

// The keys of the files that people write: scenarios, the dimensions of a model
// in them, devices.

#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// A row a key, out of the lists of fields that read the files.
Table Keys();

}  // namespace trainfare::scenarios
