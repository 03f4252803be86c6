#pragma once

// The groups of ranks of a fit, as they stand in its file under `ranks`.

#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::calibrate::internal {

// Nothing where there are none, as in files of before there were any.
void WriteRanks(const std::vector<RankFit>& groups, std::string& out);
std::vector<RankFit> ReadRanks(const hardware::Reader& root);

}  // namespace trainfare::calibrate::internal
