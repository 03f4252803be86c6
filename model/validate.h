#pragma once

#include "model/workload.h"

namespace trainfare::model {

// Throws InputError when a count, alone or multiplied, is out of range, hidden
// is not a multiple of heads, or the length passes the model's positions.
void Validate(const Workload& workload);

}  // namespace trainfare::model
