#pragma once

// What the runs of a calibration have told so far, and how much of the answer
// they leave open.

#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/records/observation.h"
#include "calibrate/session/progress_log.h"
#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate::internal {

class KnownSoFar {
 public:
  // Before any run. `asked`: steps by name, if any.
  KnownSoFar(const hardware::Device& device,
             const std::vector<model::Workload>& asked);

  // A fit that is refused changes nothing, and says so.
  void Learn(const std::vector<Observation>& observations,
             ProgressLog& progress);

  const Fit& fit() const { return fit_; }
  // Half the 80 % interval that `predict` gives the asked steps, as a share of
  // them and the mean over them; 0 where none is asked for.
  double interval() const { return interval_; }
  // What the last runs were worth to the asked steps, in words to append;
  // empty where none is asked for.
  std::string Worth() const;

 private:
  const hardware::Device& device_;
  const std::vector<model::Workload>& asked_;
  Fit fit_;
  double interval_ = 0;
  double interval_before_ = 0;  // that the last runs were learnt
};

}  // namespace trainfare::calibrate::internal
