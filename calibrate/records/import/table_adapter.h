#pragma once

// What a row of a table says of adapters beside frozen weights.

#include "calibrate/records/import/table_row.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Rank, matrices and bits of the base, from the row or, where it does not say,
// from its program's defaults; nothing where all trains. The architecture is
// known. Throws Unused.
void SetAdapter(const TableRow& row, model::Workload& workload);
// How adapters are kept and gathered, and what is updated. Adapters, weights and
// stack are known. Throws Unused.
void SetAdapterPlacing(const TableRow& row, model::Workload& workload);

}  // namespace trainfare::calibrate
