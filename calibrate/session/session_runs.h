#pragma once

// What a calibration has measured, and what of it the fit is made of.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/repeated_runs.h"
#include "calibrate/session/earlier_runs.h"

namespace trainfare::calibrate::internal {

class SessionRuns {
 public:
  // Runs and collectives behind the fit that stands there count, too; before
  // any other is added.
  void Begin(EarlierRuns earlier);
  void Add(MeasuredRun run);
  void Add(MeasuredCollective collective);

  // Why the earlier runs do not count beside the last one, which may be one of
  // theirs again: the machine is not the same any more. Nothing where they do,
  // and where there are none.
  std::optional<std::string> WhyNotEarlier() const;
  void DropEarlier();

  // Undisturbed runs of one workload whose times say that the machine's speed
  // changed between them.
  std::optional<Drift> ChangeOfSpeed() const;

  const EarlierRuns& earlier() const { return earlier_; }
  const std::vector<MeasuredRun>& all() const { return runs_; }
  // Those that are not of the fit which stands there.
  int64_t new_runs() const;
  const std::vector<MeasuredCollective>& collectives() const {
    return collectives_;
  }
  // What is fitted to: without disturbed runs that a better one stands for.
  const KeptRuns& kept() const { return kept_; }
  const std::vector<Observation>& observations() const { return observations_; }

 private:
  void Choose();

  EarlierRuns earlier_;  // first in the two that follow
  std::vector<MeasuredRun> runs_;
  std::vector<MeasuredCollective> collectives_;
  KeptRuns kept_;
  std::vector<Observation> observations_;  // of what is kept
};

}  // namespace trainfare::calibrate::internal
