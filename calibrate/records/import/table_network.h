#pragma once

// What a row of a table says of hosts and of what joins them.

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/observation.h"

namespace trainfare::calibrate {

// Hosts and, where the row says so, the network between them, of an
// observation whose devices are known; slices of TPUs are hosts here, since what
// joins them is a network. Throws InputError where devices do not divide over
// the hosts, Unused over the slices or where what joins these is not known.
void SetHosts(const TableRow& row, Observation& observation);

}  // namespace trainfare::calibrate
