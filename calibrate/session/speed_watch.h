#pragma once

// A machine's speed is watched by one run that is repeated now and then.

#include <optional>

#include "calibrate/records/measurement.h"
#include "calibrate/session/plan.h"

namespace trainfare::calibrate::internal {

class SpeedWatch {
 public:
  // The first run that will do: of one device, undisturbed, and not too short.
  // It is due now, or after the usual time.
  enum class Due { kNow, kLater };
  void Offer(const MeasuredRun& run, double spent_s, Due due);

  // The run to repeat, where it is due after so many seconds of the session.
  std::optional<PlannedRun> TakeDue(double spent_s);

 private:
  std::optional<PlannedRun> run_;
  double due_s_ = 0;
};

}  // namespace trainfare::calibrate::internal
