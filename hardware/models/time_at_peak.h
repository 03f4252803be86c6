#pragma once

// What a model's products take at a device's peak.

#include <optional>

#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

// What a step would take if the device's matrix engines did nothing but the
// model's own products (model::StepModelFlops) at their peak: an MFU of 1.
// nullopt: a precision that the device does not have.
std::optional<model::Seconds<>> TimeAtPeak(const Device& device,
                                           const model::Workload& workload);

}  // namespace trainfare::hardware
