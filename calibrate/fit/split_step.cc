#include "calibrate/fit/split_step.h"

#include <utility>

namespace trainfare::calibrate {
namespace {

std::vector<ModelStages::Stage> DistinctStages(const model::Workload& whole,
                                               std::vector<size_t>& order) {
  std::vector<ModelStages::Stage> distinct;
  for (int64_t stage = 0; stage < whole.parallel.pipeline; ++stage) {
    model::Workload workload = model::OfStage(whole, stage);
    // Those between first and last are alike, but for how many blocks they have.
    size_t at = distinct.size();
    while (at > 0 && !(distinct[at - 1].workload == workload)) --at;
    if (at > 0) {
      ++distinct[at - 1].count;
      order.push_back(at - 1);
      continue;
    }
    order.push_back(distinct.size());
    distinct.push_back({std::move(workload),
                        model::TensorMessagesOf(whole, stage),
                        model::ContextMessagesOf(whole, stage),
                        model::ExpertMessagesOf(whole, stage),
                        1});
  }
  return distinct;
}

}  // namespace

ModelStages::ModelStages(const model::Workload& whole)
    : whole_(whole),
      distinct_(DistinctStages(whole, order_)),
      messages_(distinct_.front().workload) {}

}  // namespace trainfare::calibrate
