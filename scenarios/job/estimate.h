#pragma once

// What one job takes on one device or on several that train data parallel:
// step, run, memory, energy. Prices are left to the caller.

#include <optional>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// One optimizer step on all devices of the cluster, which are `source`'s.
// Throws InputError when the device cannot run the precision, or the workload
// is not valid.
StepEstimate EstimateStep(const calibrate::Predictor& predictor,
                          const model::Workload& workload,
                          const Cluster& cluster,
                          std::string_view source = calibrate::kOwnSource);

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

// Throws InputError when the device cannot run the precision.
JobEstimate EstimateJob(const Scenario& scenario,
                        const calibrate::Predictor& predictor,
                        const Cluster& cluster);
// How much of an estimate is asked for.
enum class Detail {
  kTimes,  // without intervals, grades and how busy engines are
  kAll,
};
// The same of several jobs and clusters, whose device is asked once for what
// they have in common; all are of the memo's source.
JobEstimate EstimateJob(const Scenario& scenario,
                        DeviceMemo& memo,
                        const Cluster& cluster,
                        Detail detail = Detail::kAll);

}  // namespace trainfare::scenarios
