#pragma once

// What several ranks add: collectives between them, and runs over them.

#include "calibrate/records/record_file.h"
#include "calibrate/session/machine.h"
#include "calibrate/session/options.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/session_runs.h"
#include "calibrate/session/session_trainer.h"

namespace trainfare::calibrate::internal {

// What of the budget goes to them where they are asked for.
inline constexpr double kRankShare = 0.3;

// Over each number of ranks of the target, in what is left of the budget. It
// may fail without the runs of one being lost.
void MeasureRanks(const CalibrationTarget& target,
                  const CalibrateOptions& options,
                  SessionTrainer& trainer,
                  SessionRuns& runs,
                  RecordFile& records,
                  ProgressLog& progress);

}  // namespace trainfare::calibrate::internal
