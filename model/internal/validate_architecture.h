#pragma once

// Whether a network is one that is counted.

#include "model/architecture.h"

namespace trainfare::model::internal {

// Throws InputError that names the first of its fields that cannot be so.
void ValidateArchitecture(const Architecture& architecture);

}  // namespace trainfare::model::internal
