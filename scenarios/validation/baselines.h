#pragma once

// What two simpler models make of a step, to set a prediction's error beside.
// They are no predictions of this program.

#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::scenarios {

struct Baselines {
  // Every kernel at the datasheet's peak of its products or at the bandwidth
  // of memory, whichever takes longer (Williams, Waterman & Patterson 2009).
  model::Seconds<> roofline;
  // Model FLOPs at the peak of the precision. Over one MFU it is what a rule
  // of thumb says.
  model::Seconds<> at_peak;
};

// Of all micro-batches and the update on one device, nothing sent. The
// workload has passed Validate(); throws InputError where the device has no
// peak in its precision.
Baselines BaselinesOf(const hardware::Device& device,
                      const model::Workload& workload);

}  // namespace trainfare::scenarios
