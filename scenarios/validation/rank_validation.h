#pragma once

// Several ranks, predicted from one rank and from all-reduces by themselves,
// beside what was measured (docs/models/data_parallel.md).

#include <string>
#include <vector>

#include "scenarios/report/output.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// Whether these files are records of the trainer, each with all-reduces and
// with runs of one and of several ranks: each file is one network.
bool HoldRanks(const std::vector<std::string>& files);

// As Validate(), with groups `backward`, `step` and `recursion`: the last puts
// measured times of buckets into the formula of overlap. Throws UsageError for
// a protocol that fits, since nothing is fitted to the runs.
Report ValidateRanks(const ValidateOptions& options);

}  // namespace trainfare::scenarios
