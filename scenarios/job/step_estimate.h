#pragma once

// One optimizer step on one device or over several: its parts, how sure they
// are, and how far from what was measured.

#include <optional>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "model/units.h"
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

// What one rank sends the others in a step, nothing beside it.
struct GradientExchange {
  model::Bytes<> sent;
  model::Seconds<> sending;
};
// nullopt: nothing is sent that is not in the step of one, or ranks share state
// (StepEstimate::traffic).
std::optional<GradientExchange> GradientExchangeOf(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const Cluster& cluster);

// An all-reduce of so much among its ranks, nothing beside it. Throws
// InputError where their gradients are not summed by one.
calibrate::MessageTime AllReduceTimeOf(const calibrate::Predictor& predictor,
                                       const model::Workload& workload,
                                       const Cluster& cluster,
                                       model::Bytes<> size);

}  // namespace trainfare::scenarios
