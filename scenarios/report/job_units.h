#pragma once

// The units of a table's columns, by the jobs that it shows.

#include <vector>

#include "scenarios/job/estimate.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {

struct JobUnits {
  ColumnUnit step;
  ColumnUnit run;
  ColumnUnit energy;
  ColumnUnit memory;
};

// Memory is of all jobs, the rest of those that fit.
JobUnits UnitsOf(const std::vector<const JobEstimate*>& jobs);

}  // namespace trainfare::scenarios
