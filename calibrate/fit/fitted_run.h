#pragma once

// What was measured beside what a fit makes of it.

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/records/observation.h"
#include "model/units.h"

namespace trainfare::calibrate {

// One observation as the fit sees it.
struct FittedRun {
  std::string label;
  std::string workload;  // as Describe writes it
  // The place of the workload; without one a run tells nothing of the formula's
  // error.
  std::optional<Place> place;
  Quantity quantity = Quantity::kStep;
  // How many devices the run went over, and over how many hosts. 0: over a part
  // of one, which stands for all of it. Absent: the file does not say.
  std::optional<int64_t> devices;
  int64_t hosts = 1;
  // Ranks whose exchange is not in the step of one, but added to it; 1: none.
  int64_t ranks = 1;
  // Later, to a fit whose parameters stay (added_runs.h).
  bool added = false;
  // Something that makes its step is assumed (calibrate/records/assumed.h): no
  // answer is measured by it.
  bool assumed = false;
  model::Seconds<> measured;
  model::Seconds<> modelled;
  // Modelled by a fit to all other runs, where that was made.
  std::optional<model::Seconds<>> left_out;
};

// One run of which a profiler showed what the engines do (engine_profile.h). A
// time of it is a FittedRun, too.
struct FittedProfile {
  std::string label;
  std::string workload;  // as Describe writes it
  bool assumed = false;  // as of a FittedRun
};

}  // namespace trainfare::calibrate
