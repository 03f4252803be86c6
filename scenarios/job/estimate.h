#pragma once

// What one job takes on one device or on several that train data parallel:
// step, run, memory, energy. Prices are left to the caller.

#include "calibrate/fit/predictor.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// Throws InputError when the device cannot run the precision.
JobEstimate EstimateJob(const Scenario& scenario,
                        const calibrate::Predictor& predictor,
                        const Cluster& cluster);
// How much of an estimate is asked for; each has what those before it have.
enum class Detail {
  kMemory,  // whether it fits, without the largest batch that does
  kStep,    // the mean step, and the rates that it comes to
  kTimes,   // all but intervals, grades and how busy engines are
  kAll,
};
// The same of several jobs and clusters, whose device is asked once for what
// they have in common; all are of the memo's source.
JobEstimate EstimateJob(const Scenario& scenario,
                        DeviceMemo& memo,
                        const Cluster& cluster,
                        Detail detail = Detail::kAll);

}  // namespace trainfare::scenarios
