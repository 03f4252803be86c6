#pragma once

// What files of measurements hold, sorted by what it is fitted to.

#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/power.h"
#include "calibrate/fit/rank_fit.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/memory_observation.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// A file, or a document of published figures, and the devices it speaks of as
// it names them; none: of which is not known.
struct MeasurementSource {
  std::string name;
  std::set<std::string> devices;
};

// A row that is not used.
struct LeftOutRow {
  std::string label;  // "file:line"
  std::string reason;
};

struct ObservationFiles {
  std::vector<Observation> observations;
  std::vector<KernelObservation> kernels;  // operations by themselves
  std::vector<EngineProfile> profiles;     // of engines
  std::vector<PowerObservation> powers;
  std::vector<MemoryObservation> memory;  // validated, in no fit
  // What several ranks are fitted to, from the trainer's own records.
  RankRecords ranks;
  // What was left out and why, one line each, the file in front.
  std::vector<std::string> notes;
  std::vector<LeftOutRow> unused;  // of tables
  std::vector<MeasurementSource> sources;
  std::string host;      // of the first run that says so
  std::string software;  // of the first run that says so
};

// The names of the sources, of those that speak of `device` where it is given.
std::string SourceNames(const ObservationFiles& files,
                        const hardware::Device* device = nullptr);

}  // namespace trainfare::calibrate
