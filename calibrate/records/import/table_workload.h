#pragma once

// What a row of a table ran, as a workload.

#include <cstdint>

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/timed_parts.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The workload of each of `devices`. Throws Unused.
model::Workload WorkloadOf(const TableRow& row,
                           const Measured& measured,
                           int64_t devices);

}  // namespace trainfare::calibrate
