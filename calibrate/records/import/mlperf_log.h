#pragma once

// Step time of a training run, from its MLPerf log: lines ":::MLLOG {..}".
//
// The log says when, how many samples and the global batch, not which model on
// which device: the caller does. Format: mlperf_logging/mllog of
// mlcommons/logging (mllog.py, constants.py).

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/trainer_state.h"
#include "calibrate/records/observation.h"

namespace trainfare::calibrate {

struct MlperfRun {
  Observation observation;  // of as many devices as share the global batch
  std::vector<std::string> notes;
};

// Whether there is such a line in it.
bool IsMlperfLog(std::string_view text);

// Mean step time: run_stop - run_start without the evaluations between, over
// the samples trained / global_batch_size. Throws InputError "file:line: ..."
// where the run did not end, or is of another batch, length or accumulation
// than the workload.
MlperfRun ParseMlperfLog(std::string_view text,
                         const std::string& name,
                         const RunContext& run);

}  // namespace trainfare::calibrate
