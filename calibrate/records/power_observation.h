#pragma once

// The power of a run, as a fit takes it.

#include <cstdint>
#include <string>

#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

enum class PowerFigure {
  kDevice,  // of one device: by its driver
  kHost,    // of a whole server: processors, memory, fans, network
};

// Mean power over a run.
struct PowerObservation {
  std::string label;   // as of the run's observation of time
  std::string group;   // the table; empty: none
  std::string device;  // catalog name, or as reported
  int64_t device_count = 1;
  int64_t hosts = 1;  // that the devices are on, as many on each
  model::Workload workload;
  PowerFigure figure = PowerFigure::kDevice;
  // Of a host: behind its power supplies, not at the wall.
  bool behind_supplies = false;
  model::Watts<> measured;    // of one device or host
  double relative_noise = 0;  // 0 = unknown
  std::string framework;      // as the source says, may be empty
};

}  // namespace trainfare::calibrate
