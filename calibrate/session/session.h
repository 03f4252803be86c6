#pragma once

// A calibration of the machine at hand: short runs of the trainer, one after
// the other as the plan asks for them, into records and a fit.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "calibrate/session/machine.h"
#include "calibrate/session/options.h"

namespace trainfare::calibrate {

// As Calibrate(), of this machine.
CalibrateResult CalibrateHere(const CalibrationTarget& target,
                              const std::string& trainer_program,
                              const CalibrateOptions& options,
                              const std::string& fit_path,
                              std::ostream& log);

// Before minutes are spent on what could not be kept: no folder, somebody
// else's file. The folder of a place that nobody named is made. Throws
// InputError.
void RequireFitWritable(const CalibrateOptions& options,
                        const std::string& path);

}  // namespace trainfare::calibrate
