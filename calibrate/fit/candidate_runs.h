#pragma once

// Runs that one might do to learn more of a device.

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Whether a model runs at that length: its positions may end before it, or have
// no end.
bool TakesLength(const model::Architecture& architecture, int64_t length);

// Short runs that one might do on a device, in the order in which ties are
// broken: models from the smallest up, batches and lengths that cover both
// sides of the ridge point. Precisions that the device lacks are left out.
// Throws InputError for an unknown model.
std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models = {});

}  // namespace trainfare::calibrate
