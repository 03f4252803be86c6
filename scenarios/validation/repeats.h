#pragma once

// Measurements of one point taken several times.

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/records/observation.h"
#include "model/units.h"

namespace trainfare::scenarios {

// One point: what was measured there at several times.
struct Repeats {
  calibrate::Observation middle;  // the median of them, labelled by the first
  std::vector<model::Seconds<>> measured;

  // Greatest over smallest, less one.
  double Spread() const;
  // |measured / median of the other ones - 1| of each: what a repeat of the
  // measurement itself errs by as a prediction. Empty for a single one.
  std::vector<double> OwnErrors() const;
};

// Observations of one device, number of devices, workload and quantity as one,
// in the order of the first of each.
std::vector<Repeats> MergeRepeats(
    const std::vector<calibrate::Observation>& observations);

}  // namespace trainfare::scenarios
