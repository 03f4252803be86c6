#pragma once

// The power of a run, as a fit takes it.

#include <cstdint>
#include <string>

#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Mean power of one device over a run.
struct PowerObservation {
  std::string label;   // as of the run's observation of time
  std::string device;  // catalog name, or as reported
  int64_t device_count = 1;
  model::Workload workload;
  model::Watts<> measured;
  double relative_noise = 0;  // 0 = unknown
};

}  // namespace trainfare::calibrate
