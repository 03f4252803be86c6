#pragma once

// The end of a calibration: its fit, and the files that stay.

#include "calibrate/session/options.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/session_files.h"
#include "calibrate/session/session_runs.h"
#include "calibrate/session/session_trainer.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate::internal {

// Fits to all runs and puts the fit where it belongs. Interrupted, the fit is
// provisional and the records stay for the next calibration to go on from.
// Throws InputError where there is no run.
CalibrateResult FinishSession(const hardware::Device& device,
                              const CalibrateOptions& options,
                              const SessionTrainer& trainer,
                              const SessionRuns& runs,
                              const SessionFiles& files,
                              ProgressLog& progress);

}  // namespace trainfare::calibrate::internal
