#pragma once

// Energy of a job's devices, from what its step spends its time on.

#include "hardware/catalog/device.h"
#include "scenarios/job/estimate.h"

namespace trainfare::scenarios {

// Fills in the energy of a job whose step and run are estimated: nothing where
// the device's power is not published. docs/models/energy.md
void EstimateEnergy(const hardware::Device& device, JobEstimate& job);

}  // namespace trainfare::scenarios
