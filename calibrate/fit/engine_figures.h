#pragma once

// Busy shares and traffic of a device's engines: what its model makes of them,
// and what a profile of them says as residuals of a fit.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/fit/problem.h"
#include "calibrate/records/engine_profile.h"
#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Errors assumed of the figures, which are printed with one to three digits: in
// shares of a step, and relative for bytes.
inline constexpr double kEngineShareSigma = 0.015;
inline constexpr double kEngineBytesSigma = 0.05;

// How busy the engines of a device are in a step at these parameters, in their
// own units; nullopt where its model has no engines.
std::optional<EngineProfile> EnginesOf(const hardware::Device& device,
                                       const model::Workload& workload,
                                       const std::vector<double>& values);

// How many figures it has besides its step's time.
size_t EngineFigureCount(const EngineProfile& profile);

// (modelled - seen) / sigma of shares, log(modelled / seen) / sigma of bytes, a
// residual a figure, over positions whose first are the device's parameters.
// `device` must outlive the block. Throws InputError where its model has no
// engines.
std::unique_ptr<ResidualBlock> EngineResiduals(const hardware::Device& device,
                                               const EngineProfile& profile);

}  // namespace trainfare::calibrate
