#pragma once

// Makes a fit of one device from what was measured on it.

#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// Fits the model of `device` to what was measured on it. Throws InputError
// when there is no observation, or none of this device.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options = {});
// And to kernels by themselves and what engines were seen to do. Where there is
// no more than kernels, the fit knows no step, so that its answers are
// extrapolated, as widely as a datasheet's.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const std::vector<EngineProfile>& profiles,
              const FitOptions& options = {});
// To figures that were chosen as OfDevice() does.
Fit FitFigures(const hardware::Device& device,
               const OwnFigures& own,
               const FitOptions& options = {});

}  // namespace trainfare::calibrate
