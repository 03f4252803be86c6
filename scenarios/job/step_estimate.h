#pragma once

// One optimizer step on one device or over several: its parts, how sure they
// are, and how far from what was measured.

#include <string_view>

#include "calibrate/fit/predictor.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/job_estimate.h"

namespace trainfare::scenarios {

// One optimizer step on all devices of the cluster, which are `source`'s.
// Throws InputError when the device cannot run the precision, or the workload
// is not valid.
StepEstimate EstimateStep(const calibrate::Predictor& predictor,
                          const model::Workload& workload,
                          const Cluster& cluster,
                          std::string_view source = calibrate::kOwnSource);

// The same of the memo's source, of a workload as one of the devices sees it
// (calibrate::OnDevices); and without what interval and grade take.
StepEstimate EstimateStep(DeviceMemo& memo,
                          const model::Workload& workload,
                          const Cluster& cluster);
StepEstimate EstimateStepTimes(DeviceMemo& memo,
                               const model::Workload& workload,
                               const Cluster& cluster);

}  // namespace trainfare::scenarios
