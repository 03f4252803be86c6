#pragma once

// Measured steps, and parts of them, beside predictions by each protocol.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/power.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"
#include "hardware/catalog/device.h"
#include "model/units.h"
#include "scenarios/validation/baselines.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/options.h"

namespace trainfare::scenarios {

// A measured row and what became of it.
struct StepRow {
  const calibrate::Observation* observation = nullptr;
  size_t device = 0;  // of those of the validation; a name unknown: none
  std::string point;  // workload and devices: rows of one point are repeats
  std::string work;   // of one device, over whatever number of them
  bool fitted = false;
  bool asked = true;  // whether it is to be predicted
  std::optional<model::Seconds<>> predicted;
  model::Seconds<> low;  // the 80 % interval
  model::Seconds<> high;
  model::Seconds<> low_95;
  model::Seconds<> high_95;
  // Of a whole step that was predicted.
  std::optional<Baselines> baselines;
  calibrate::Grade grade = calibrate::Grade::kDatasheetOnly;
  double log_sigma = 0;
  double source_sigma = 0;  // of it, for a source that the fit has not seen
  bool source_seen = false;
  // Where the run's power was measured, too, and its prediction.
  const calibrate::PowerObservation* power = nullptr;
  std::optional<calibrate::PowerAnswer> predicted_power;
  std::string reason;                   // why it is not predicted
  std::optional<double> repeat_spread;  // of the point's repeats

  RowError Error() const {
    const model::Seconds<> measured = observation->measured;
    return {100.0 * (*predicted / measured - 1.0),
            low <= measured && measured <= high,
            low_95 <= measured && measured <= high_95};
  }
};

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
