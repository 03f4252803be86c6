#pragma once

// Measurements from files of any kind that is known: records of the trainer
// (.jsonl, .json), tables (.csv), a folder of published figures, a
// trainer_state.json of Hugging Face, or an MLPerf log (.txt, .log).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/power.h"
#include "calibrate/fit/profile_fit.h"
#include "calibrate/fit/rank_fit.h"
#include "calibrate/records/import/trainer_state.h"
#include "calibrate/records/memory_observation.h"

namespace trainfare::calibrate {

// A file, or a document of published figures, and the devices it speaks of as
// it names them; none: of which is not known.
struct MeasurementSource {
  std::string name;
  std::set<std::string> devices;
};

struct ObservationFiles {
  std::vector<Observation> observations;
  std::vector<KernelObservation> kernels;  // operations by themselves
  std::vector<EngineProfile> profiles;     // of engines
  std::vector<PowerObservation> powers;    // of runs of one device
  std::vector<MemoryObservation> memory;   // validated, in no fit
  // What several ranks are fitted to, from the trainer's own records.
  RankRecords ranks;
  // What was left out and why, one line each, the file in front.
  std::vector<std::string> notes;
  std::vector<MeasurementSource> sources;
  std::string host;      // of the first run that says so
  std::string software;  // of the first run that says so
};

// The names of the sources, of those that speak of `device` where it is given.
std::string SourceNames(const ObservationFiles& files,
                        const hardware::Device* device = nullptr);

// `run` says what was trained on what for the logs of other trainers, which do
// not. Throws InputError "file:line: ..." for what cannot be read, and when
// nothing usable is in any of them.
ObservationFiles ReadObservations(
    const std::vector<std::string>& paths,
    const std::optional<RunContext>& run = std::nullopt);

// The fit of `device` to what of `files` is of it: profiles where there are
// any, else times; the ranks that it trains with, and its power. What was not
// used is added to `notes`. Throws InputError when nothing is of it.
Fit MakeFit(const hardware::Device& device,
            const ObservationFiles& files,
            const FitOptions& options,
            std::vector<std::string>& notes);

}  // namespace trainfare::calibrate
