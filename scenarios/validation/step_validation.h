#pragma once

// Measured steps, and parts of them, beside predictions by each protocol.

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"
#include "hardware/catalog/device.h"
#include "scenarios/validation/options.h"
#include "scenarios/validation/step_rows.h"

namespace trainfare::scenarios {

// The rows of some observations, which it refers to.
struct StepValidation {
  std::vector<StepRow> rows;
  std::vector<hardware::Device> devices;
  // Files of fits that could not be read, a line each.
  std::vector<std::string> left_out_fits;

  // A row that was predicted has one.
  const hardware::Device* DeviceOf(const StepRow& row) const {
    return row.device < devices.size() ? &devices[row.device] : nullptr;
  }
};

// Each row predicted as the protocol has it, or with the reason why it is not;
// with the power of its run, where that is among `powers` by the same label.
StepValidation ValidateSteps(
    const ValidateOptions& options,
    const std::vector<calibrate::Observation>& observations,
    const std::vector<calibrate::PowerObservation>& powers = {});

}  // namespace trainfare::scenarios
