#pragma once

// What was measured of a device's memory in training.

#include <cstdint>
#include <string>

#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

enum class MemoryFigure {
  kAllocated,    // the most that tensors took
  kReserved,     // the most that the framework's allocator held for them
  kUsed,         // with what the driver and the framework take besides
  kUnstated,     // one of these, of which the source does not say which
  kOutOfMemory,  // the run died for want of it
};

struct MemoryObservation {
  std::string label;   // "file:line"
  std::string group;   // the table
  std::string device;  // catalog name, or as the source says
  int64_t device_count = 1;
  model::Workload workload;
  MemoryFigure figure = MemoryFigure::kAllocated;
  model::Bytes<> measured;  // of the fullest device; 0 where it ran out
  std::string framework;    // as the source says, may be empty
  std::string source;       // who measured it
};

}  // namespace trainfare::calibrate
