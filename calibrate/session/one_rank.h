#pragma once

// The runs of one rank: which comes next, and what becomes of its answer.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/records/record_file.h"
#include "calibrate/session/known_so_far.h"
#include "calibrate/session/options.h"
#include "calibrate/session/plan.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/session_runs.h"
#include "calibrate/session/session_trainer.h"
#include "calibrate/session/speed_watch.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate::internal {

class OneRank {
 public:
  // Plans the runs. Throws InputError where the device has none to choose
  // among.
  OneRank(const hardware::Device& device,
          const CalibrateOptions& options,
          SessionRuns& runs,
          ProgressLog& progress);

  // From the runs that there are by now: they are not run again, but for one,
  // by which a change of the machine's speed since is seen first.
  void GoOn(double spent_s);

  // Runs until so many seconds are spent, or the options' interval is reached,
  // or no run is left.
  void Measure(SessionTrainer& trainer, double until_s, RecordFile& records);

 private:
  bool IsEnough(const KnownSoFar& known) const;
  std::optional<PlannedRun> Next(const KnownSoFar& known,
                                 const SessionTrainer& trainer,
                                 double left_s);
  bool Take(const std::string& line,
            const PlannedRun& asked,
            double spent_s,
            RecordFile& records);
  void Refused(const PlannedRun& asked, const std::string& message);
  void RequireHere(const MeasuredRun& run) const;
  void Done(const MeasuredRun& run);
  void CheckEarlierRuns();

  const hardware::Device& device_;
  const CalibrateOptions& options_;
  SessionRuns& runs_;
  ProgressLog& progress_;
  std::vector<model::Workload> asked_;  // steps; empty: none by name
  std::optional<Planner> planner_;      // always there
  SpeedWatch watch_;
  std::optional<PlannedRun> again_;  // disturbed, to be repeated
  std::set<std::string> repeated_;   // workloads, each once
  int refused_ = 0;
};

}  // namespace trainfare::calibrate::internal
