#pragma once

// What the ranks of a step send each other, nothing beside it.

#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_group.h"
#include "calibrate/fit/rank_step.h"
#include "model/collective.h"
#include "model/units.h"
#include "model/words.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"

namespace trainfare::scenarios {

// Whether other ranks, or the host, have what a step of this one needs.
bool DividesStep(const model::Parallel& parallel);

// Whether chips send each other, or their hosts, what is not in the step of
// one.
bool Sends(const calibrate::Predictor& predictor,
           const model::Workload& workload,
           const Cluster& cluster);

// What joins the ranks, as far as anybody knows.
calibrate::RankFit GroupOf(const calibrate::Predictor& predictor,
                           const Cluster& cluster);

// What ranks that were measured leave open of another number of them, as a
// standard deviation of the logarithm of a time.
double OtherRanksSigma(const Cluster& cluster);

// What the slowest of several ranks that nobody measured, and their host, may
// move a step by, so that 80 % of Lambda's and NVIDIA's rows over 2 to 16 GPUs
// are inside, devices left out (docs/results/intervals.md).
inline constexpr double kUnmeasuredRanksSigma = 0.14;

// What one rank sends the others in a step.
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

// An all-reduce of so much among its ranks. Throws InputError where their
// gradients are not summed by one.
calibrate::MessageTime AllReduceTimeOf(const calibrate::Predictor& predictor,
                                       const model::Workload& workload,
                                       const Cluster& cluster,
                                       model::Bytes<> size);

// How ranks of a step send each other: sums and gathers, keys and values that go
// round a ring, tokens to experts and back (model::ExpertExchange).
enum class StepCollective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kRingPass,
  kAllToAll,
  kRowsByHost
};

}  // namespace trainfare::scenarios
namespace trainfare::model {

template <>
inline constexpr auto kWords<scenarios::StepCollective> =
    Words<scenarios::StepCollective>(
        "collective",
        {{scenarios::StepCollective::kAllReduce, "all_reduce"},
         {scenarios::StepCollective::kAllGather, "all_gather"},
         {scenarios::StepCollective::kReduceScatter, "reduce_scatter"},
         {scenarios::StepCollective::kRingPass, "ring_pass"},
         {scenarios::StepCollective::kAllToAll, "all_to_all"},
         {scenarios::StepCollective::kRowsByHost, "rows_by_host"}});

}  // namespace trainfare::model
namespace trainfare::scenarios {

// A collective of a step's, of one size.
struct CollectiveTime {
  StepCollective collective = StepCollective::kAllReduce;
  int64_t ranks = 0;
  // On each rank, or of all of them together; of rows by host each row once.
  model::Bytes<> size;
  model::Seconds<> time;
  // What a link of one rank carries over the time, as nccl-tests count it; of
  // rows by host what leaves a rank for other hosts, or other ranks of one.
  model::BytesPerSecond<> bus;
};
// What each collective of a step takes by size: those within layers over ranks
// that divide these; gathers and sums that scatter over the ranks of a copy,
// all-reduces over copies; what goes round ranks of a sequence, and what ranks
// send each other's experts. Empty: none is sent that is not in the step of one.
std::vector<CollectiveTime> CollectiveTimesOf(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const Cluster& cluster);

}  // namespace trainfare::scenarios
