#pragma once

// Runs that something else took time from: which to leave out, and how much
// less the others weigh; and machines that change their speed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/records/measurement.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What a disturbed run adds to the relative noise of its medians. A run's
// steps are longer by the share of the time that its threads waited for a
// processor, at most; where that share is small or not known, what disturbed
// (a GPU held down by heat, another process on it) moved runs by about this
// much. An assumption, wide on purpose.
inline constexpr double kLeastDisturbedNoise = 0.05;
// 0 for a run that was not disturbed.
double DisturbanceNoise(const MeasuredRun& run);
double DisturbanceNoise(const MeasuredKernel& kernel);

// "its threads waited 12 % of the time for a processor", or what is known.
std::string DisturbanceWords(const MeasuredRun& run);

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
