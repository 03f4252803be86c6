#pragma once

// Published figures as measurement records: what a fit is made of.

#include <string>

#include "calibrate/records/import/observation_files.h"
#include "calibrate/records/import/published.h"
#include "calibrate/records/import/published_workload.h"

namespace trainfare::calibrate {

// Rows with `use: fit` as observations, profiles, all-reduces and runs over
// ranks, of all devices; a label is the row's id, that of a profile its run.
// `keep`: which runs a fit may see; empty: all. Rows that say nothing of a
// step's time, and runs that do not say enough, are left out.
//
// A run of several devices is a run over ranks. Where a device compiles its
// graph, messages are in the graph: its step is taken as one of a device, with
// what it waits for. What was measured of a part of a chip is an observation of
// the chip, too, whose parts run alike, each with its share of the batch.
ObservationFiles RecordsOf(const Published& published,
                           const KeepRun& keep = {});

}  // namespace trainfare::calibrate
