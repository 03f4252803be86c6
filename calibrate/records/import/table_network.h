#pragma once

// What a row of a table says of hosts and of what joins them.

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/observation.h"

namespace trainfare::calibrate {

// Hosts and, where the row says so, the network between them, of an
// observation whose devices are known. Throws InputError where devices do not
// divide over the hosts.
void SetHosts(const TableRow& row, Observation& observation);

}  // namespace trainfare::calibrate
