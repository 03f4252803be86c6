#pragma once

// What `trainfare calibrate` shows of its fit.

#include "calibrate/session/command.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Exit code 130 when the calibration was interrupted, after all that was
// measured is kept. What a fit to files leaves out of them is counted.
Report CalibrationReport(const calibrate::CalibrateResult& result,
                         const Origin& origin);
// The same of no device in particular, with every figure that one may have.
Report ExampleOfCalibration(const Origin& origin);

}  // namespace trainfare::scenarios
