#pragma once

// Step time of a run of Hugging Face's Trainer, from the trainer_state.json
// that it leaves in its output folder.
//
// The file says how long and how many steps, not what was trained on what: the
// caller does. Format: TrainerState and log_history of Transformers 4.x
// (src/transformers/trainer_callback.py, speed_metrics in trainer_utils.py).

#include <string>

#include "calibrate/records/observation.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What such a log leaves out.
struct RunContext {
  model::Workload workload;
  std::string device;  // catalog name
};

// Whether the file is one: a JSON object with a log_history.
bool IsTrainerState(const std::string& path);

// Mean step time: train_runtime without the evaluations in it, over the steps.
// It holds all that the loop does beside the step: loading, logging,
// checkpoints. Throws InputError "file: key: ..." where the run did not end or
// its batch is not the workload's.
Observation ReadTrainerState(const std::string& path, const RunContext& run);

}  // namespace trainfare::calibrate
