#pragma once

// What a row of a table ran, as a workload.

#include <cstdint>

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/observation.h"
#include "model/workload.h"

namespace trainfare::calibrate {

struct Measured {
  model::Work work = model::Work::kTraining;
  Quantity quantity = Quantity::kStep;
};

// What of a step was timed. Throws Unused.
Measured WorkOf(const TableRow& row);

// The workload of each of `devices`. Throws Unused.
model::Workload WorkloadOf(const TableRow& row,
                           const Measured& measured,
                           int64_t devices);

}  // namespace trainfare::calibrate
