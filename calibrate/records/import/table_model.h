#pragma once

// The network that a row of a table is of, by its name and its dimensions.

#include "calibrate/records/import/table_row.h"
#include "model/architecture.h"

namespace trainfare::calibrate {

// Throws Unused with the reason where it is none that is counted, InputError
// where its dimensions are not those of its name.
model::Architecture ArchitectureOf(const TableRow& row);

}  // namespace trainfare::calibrate
