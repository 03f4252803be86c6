#pragma once

// Measurements from files of any kind that is known, by their suffix: records
// of the trainer (.jsonl, .json) or tables (.csv).

#include <string>
#include <vector>

#include "calibrate/fit.h"

namespace trainfare::calibrate {

struct ObservationFiles {
  std::vector<Observation> observations;
  // What was left out and why, one line each, the file in front.
  std::vector<std::string> notes;
  std::string source;    // the files by name
  std::string host;      // of the first run that says so
  std::string software;  // of the first run that says so
};

// Throws InputError "file:line: ..." for what cannot be read, and when nothing
// usable is in any of them.
ObservationFiles ReadObservations(const std::vector<std::string>& paths);

}  // namespace trainfare::calibrate
