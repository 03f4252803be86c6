#pragma once

// Energy of a job's devices, from what its step spends its time on.

#include <optional>

#include "calibrate/fit/power.h"
#include "calibrate/fit/predictor.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/job_estimate.h"

namespace trainfare::scenarios {

// Mean power of a device in such a step; nullopt where the device's levels are
// not known. What was measured of it is in the predictor's fit.
std::optional<calibrate::PowerAnswer> StepPower(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const StepEstimate& step);

// Fills in the energy of a job whose step and run are estimated: nothing where
// the device's power is not published. What was measured of it is in the
// predictor's fit. docs/models/energy.md
void EstimateEnergy(const calibrate::Predictor& predictor, JobEstimate& job);

// The 80 % interval of an energy: of the steps' time and power, and, at the
// devices' power at rest, of other times that the scenario leaves open; from no
// less than that power takes in the shortest run. nullopt where there is none,
// or an upper bound alone. docs/models/energy.md
struct EnergyRange {
  model::Joules<> low;
  model::Joules<> high;
};
std::optional<EnergyRange> EnergyRangeOf(const JobEstimate& job);

}  // namespace trainfare::scenarios
