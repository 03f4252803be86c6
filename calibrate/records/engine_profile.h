#pragma once

// What a profiler shows of a step besides its time. Step times alone say little
// about engines that hide under one another; their busy shares and the traffic
// say which is which.

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/records/observation.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// One configuration as profiled; what was not recorded is absent. Shares are of
// the step time, they and the bytes of the engines of one part of a chip.
struct EngineProfile {
  std::string label;
  std::string device;                            // catalog name; may be empty
  std::string source = std::string(kOwnSource);  // as of an Observation
  model::Workload workload;                      // of one device
  // That the run went over; 0: over a part of one, which stands for all of it.
  int64_t devices = 1;
  bool assumed = false;  // as of an Observation
  std::optional<model::Seconds<>> step;
  std::optional<double> tensor;
  std::optional<double> vector;
  std::optional<double> scalar;
  std::optional<double> dma;
  std::optional<model::Bytes<>> traffic;  // through memory, of one step
  std::optional<model::Bytes<>> spill;    // of it, spilled and loaded again
};

}  // namespace trainfare::calibrate
