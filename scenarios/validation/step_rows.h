#pragma once

// Measured rows, sorted by the device that each is of.

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"
#include "hardware/catalog/device.h"
#include "scenarios/validation/step_validation.h"

namespace trainfare::scenarios {

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
