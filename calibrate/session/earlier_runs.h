#pragma once

// What an earlier calibration of the same machine left: the runs behind the fit
// that stands there, so that what one more question costs is its own runs and
// not what is known of others.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/records/repeated_runs.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate::internal {

struct EarlierRuns {
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredCollective> collectives;
  std::string text;  // the records as they stand in their file
};

// The records at `path`; none where there is no such file, where it cannot be
// read, or where a run is of another device.
EarlierRuns ReadEarlierRuns(const std::string& path,
                            const hardware::Device& device);

// Whether the two are of one host by one version of the trainer.
bool AreAlike(const MeasuredRun& a, const MeasuredRun& b);

// How far the steps of `run` are from those that an earlier run of the same
// workload took; nothing where none was undisturbed.
std::optional<Drift> DriftSince(const std::vector<MeasuredRun>& earlier,
                                const MeasuredRun& run);

}  // namespace trainfare::calibrate::internal
