#pragma once

// The runs of a fit and of its groups of ranks, as they stand in its file.

#include <string>
#include <vector>

#include "calibrate/fit/fitted_run.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::calibrate::internal {

// A list of maps, its dashes behind `indent`.
void WriteRuns(const std::vector<FittedRun>& runs,
               const std::string& indent,
               std::string& out);
FittedRun ReadRun(const hardware::Reader& map);

}  // namespace trainfare::calibrate::internal
