#pragma once

// Whether what trains goes with its model and stack.

#include "model/workload.h"

namespace trainfare::model::internal {

// Throws InputError that names the first field of Trainable that cannot be so.
void ValidateTrainable(const Workload& workload);

}  // namespace trainfare::model::internal
