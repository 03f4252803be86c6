#pragma once

// Runs of one workload, made several times: which to leave out, and machines
// that change their speed between them.

#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/records/measurement.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

struct KeptRuns {
  std::vector<MeasuredRun> runs;
  int64_t left_out = 0;  // disturbed, with a better run of the same workload
  int64_t weighed_down = 0;  // disturbed and kept
};
// Leaves out disturbed runs of a workload on a device that a less disturbed one
// stands for. The order stays.
KeptRuns WithoutWorseRepeats(std::vector<MeasuredRun> runs);

// The workload whose undisturbed runs lie furthest apart: what a machine that
// is shared, or held down by heat, does between runs is seen in no single one.
struct Drift {
  model::Workload workload;
  model::Seconds<> least;  // medians of a step
  model::Seconds<> greatest;

  double share() const { return greatest / least - 1.0; }
};
// nullopt where nothing ran twice.
std::optional<Drift> GreatestDrift(const std::vector<MeasuredRun>& runs);

}  // namespace trainfare::calibrate
