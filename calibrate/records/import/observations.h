#pragma once

// Measurements from files of any kind that is known: records of the trainer
// (.jsonl, .json), tables (.csv), a folder of published figures, a
// trainer_state.json of Hugging Face, or an MLPerf log (.txt, .log).

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/records/import/observation_files.h"
#include "calibrate/records/import/trainer_state.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// `run` says what was trained on what for the logs of other trainers, which do
// not. Throws InputError "file:line: ..." for what cannot be read, and when
// nothing usable is in any of them.
ObservationFiles ReadObservations(
    const std::vector<std::string>& paths,
    const std::optional<RunContext>& run = std::nullopt);

// Whether a file that is there needs no such words: records, a table, published
// figures. False for what cannot be read.
bool SaysWhatWasTrained(const std::string& path);

struct MadeFit {
  Fit fit;
  std::vector<std::string> notes;  // of ranks that were not used
  LeftOut left_out;                // figures that are none of its
};

// The fit of `device` to what of `files` is of it: times and what engines were
// seen to do, the ranks that it trains with, and its power. Throws InputError
// when nothing is of it.
MadeFit MakeFit(const hardware::Device& device,
                const ObservationFiles& files,
                const FitOptions& options);

}  // namespace trainfare::calibrate
