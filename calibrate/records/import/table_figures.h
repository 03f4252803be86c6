#pragma once

// What the figure of a table's row is of a run: a time, memory, power.

#include <cstdint>
#include <string>

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/memory_observation.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// A row that says something of a run that is known.
struct UsedRow {
  Observation observation;  // without its time where `metric` is none
  Metric metric = Metric::kTime;
  std::string run;   // rows alike in it are of one run or its repetitions
  double value = 0;  // in s, B, W or 1/s
  int64_t line = 0;  // of the table
};

// The benchmark that a row is of; nullptr where none is known.
const Benchmark* BenchmarkOf(const TableRow& row);

// How the FLOPs of a row are counted. Throws Unused where it does not say.
const FlopsRule& FlopsOf(const TableRow& row);

// The time of what is observed, from a value of a metric of times. Throws
// Unused where the row does not say enough, InputError where the time is none.
model::Seconds<> TimeOf(const TableRow& row,
                        const MetricRule& metric,
                        double value,
                        const model::Workload& workload,
                        int64_t devices);

MemoryObservation MemoryOf(UsedRow used);

PowerObservation PowerOf(UsedRow used);

}  // namespace trainfare::calibrate
