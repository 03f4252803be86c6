#pragma once

// What the trainer finds here to compute on, and what of it to calibrate.

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/session/options.h"
#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

struct MachineDevices {
  std::string processor;          // as the trainer reports it
  std::vector<std::string> gpus;  // names by number
};

// Asks the trainer: `trainfare-trainer devices`. Throws InputError where it
// does not answer, Interrupted where a signal comes first.
MachineDevices ProbeMachine(const std::string& trainer);
// Reads what `trainfare-trainer devices` answers, a line a device.
MachineDevices ParseDevices(const std::string& lines);

// What to run on what.
struct CalibrationTarget {
  hardware::Device device;
  // Also over so many ranks on this host, each number in turn.
  std::vector<int64_t> ranks;
};

// The device that `options` names, else the GPUs where there are some, else the
// processor; over the ranks that they name, else over all GPUs where there are
// several. Throws InputError for a device that is not here, and where two kinds
// of GPU stand beside each other.
CalibrationTarget TargetOf(const MachineDevices& machine,
                           const CalibrateOptions& options);

// Where none is named: fp32; on GPUs half precision, too.
std::vector<model::Precision> DefaultPrecisions(const hardware::Device& device);

}  // namespace trainfare::calibrate
