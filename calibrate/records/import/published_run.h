#pragma once

// A run of a file of published figures as its map says it.

#include <string>

#include "calibrate/records/import/published.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::calibrate {

// Where a run stands and what it is part of.
struct RunPlace {
  std::string name;
  std::string position;  // file:line:col
  std::string document;
};

// `workload`: what the run refers to, whose keys count where it has none of its
// own; nullptr: nothing. Throws InputError.
PublishedRun ReadPublishedRun(const hardware::Reader& map,
                              const hardware::Reader* workload,
                              const RunPlace& place);

}  // namespace trainfare::calibrate
