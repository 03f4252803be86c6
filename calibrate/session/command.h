#pragma once

// `trainfare calibrate`: short runs of the trainer on this machine, or
// measurements made elsewhere, into a fit file.

#include <iosfwd>
#include <string>

#include "calibrate/session/options.h"

namespace trainfare::calibrate {

// Progress and notes go to `log`. Throws InputError when there is no trainer,
// when it fails, and when the fit is refused; the finished runs are kept.
// SIGINT, SIGTERM and SIGHUP end it after the step in progress: what is
// finished is kept for the next call and fitted if possible.
CalibrateResult Calibrate(const CalibrateOptions& options, std::ostream& log);

// Where the trainer is: $TRAINFARE_TRAINER, beside this program, or on PATH.
// Throws InputError.
std::string FindTrainer();

}  // namespace trainfare::calibrate
