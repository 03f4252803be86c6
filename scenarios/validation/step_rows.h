#pragma once

// Measured rows, sorted by the device that each is of.

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

// A device with its rows.
struct DeviceRows {
  hardware::Device device;
  std::vector<size_t> rows;  // indices into all rows
};

struct SortedRows {
  std::vector<StepRow> rows;
  std::vector<DeviceRows> devices;
};

// Rows in their order, each with its device, or the reason why it has none, and
// with the power of its run. Of a run that has its whole step the parts are
// fitted to, too, but not asked for. The rows refer to what is given.
SortedRows SortByDevice(const std::vector<calibrate::Observation>& observations,
                        const std::vector<calibrate::PowerObservation>& powers);

// Rows of a device that a fit may use: of a precision that the device runs, on
// one or over links that are known.
std::vector<size_t> FittableRows(const SortedRows& sorted,
                                 const DeviceRows& of_device);

}  // namespace trainfare::scenarios
