#pragma once

// Which short run to do next.

#include <vector>

#include "hardware/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Short runs that one might do on a device, in the order in which ties are
// broken: presets from the smallest up, batches and lengths that cover both
// sides of the ridge point, in every precision of `precisions`.
std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions);

}  // namespace trainfare::calibrate
