#pragma once

// What `trainfare calibrate` is asked for, and what it answers.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/records/observation.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

enum class Progress {
  kNone,
  kLines,  // one line a finished run
  kBar,    // one line that is redrawn (progress_line.h); for terminals
};

struct CalibrateOptions {
  // Measurements to fit to, JSON Lines or CSV by their suffix; none: run the
  // trainer here.
  std::vector<std::string> from;
  // What the measurements are of, where they do not say it themselves (a log of
  // another trainer).
  std::optional<model::Workload> workload;
  // Catalog name; empty: the GPUs here, else the processor; or the one device
  // that the measurements are of.
  std::string device;
  // The path of the fit file; empty: named after the device, in
  // UserFitDirectory().
  std::string output;
  model::Seconds<> budget = model::Second(120.0);  // start of the trainer too
  // Stop early once half the 80 % interval is below this share of the time: of
  // the steps asked for, as they are predicted; where none are, of the
  // parameters alone, as a mean over the plan's scenarios. 0: use the budget.
  double target_interval = 0.0;
  // Empty: as DefaultPrecisions (machine.h) has them.
  std::vector<model::Precision> precisions;
  // Also over so many ranks on this machine, each number in turn, in a share of
  // the budget; empty: over all GPUs where there are several.
  std::vector<int64_t> ranks;
  // Presets to run; empty: those of RunsHere() (plan.h).
  std::vector<std::string> models;
  // What will be asked: the runs are chosen towards it (runs_towards.h), in its
  // own precisions; empty: `models`.
  std::vector<model::Workload> towards;
  // Forget the finished runs of an interrupted calibration, and those behind
  // the fit that is there.
  bool fresh = false;
  // To the fit at hand instead of in its place; with `from` (fit/added_runs.h).
  bool add = false;
  // Also where the fit that is there is the better one (fit/replacement.h).
  bool force = false;
  Progress progress = Progress::kLines;
};

struct CalibrateResult {
  // nullopt: interrupted before anything could be fitted.
  std::optional<Fit> fit;
  std::string fit_path;  // empty: it is not kept, only its runs
  std::string kept;      // why the fit that was there stays; empty: it does not
  std::string records_path;               // of the runs; empty with --from
  bool interrupted = false;               // exit code 130
  LeftOut left_out;                       // figures of --from
  std::vector<Observation> observations;  // of the device, of --from
};

// A signal came before there was anything to keep.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace trainfare::calibrate
