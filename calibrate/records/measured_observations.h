#pragma once

// What a fit takes of the trainer's own records.

#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/records/observation.h"

namespace trainfare::calibrate {

// Up to four: whole step, forward, backward, optimizer. Medians over the steps
// that are not warm-up, with their noise.
// A disturbed run's noise is larger (disturbance.h).
std::vector<Observation> ObservationsOf(const MeasuredRun& run);
std::vector<Observation> ObservationsOf(const std::vector<MeasuredRun>& runs);
// The power of each run on one device that counted its energy and that nothing
// disturbed.
std::vector<PowerObservation> PowersOf(const std::vector<MeasuredRun>& runs);
// A kernel's median, its noise larger where it was disturbed.
KernelObservation ObservationOf(const MeasuredKernel& measured);

}  // namespace trainfare::calibrate
