#include "calibrate/fit/split_step.h"

#include <algorithm>
#include <utility>

namespace trainfare::calibrate {
namespace {

std::vector<ModelStage> DistinctStages(const model::Workload& whole,
                                       std::vector<size_t>& order) {
  std::vector<ModelStage> distinct;
  for (int64_t stage = 0; stage < whole.parallel.pipeline; ++stage) {
    model::Workload workload = model::OfStage(whole, stage);
    // Those between first and last are alike, but for how many blocks they have.
    const auto alike = std::find_if(
        distinct.begin(), distinct.end(), [&](const ModelStage& other) {
          return other.workload == workload;
        });
    order.push_back(static_cast<size_t>(alike - distinct.begin()));
    if (alike != distinct.end()) continue;
    ModelStage one;
    one.tensor = model::TensorMessagesOf(whole, workload);
    one.context = model::ContextMessagesOf(whole, workload);
    one.expert = model::ExpertMessagesOf(whole, workload);
    one.workload = std::move(workload);
    distinct.push_back(std::move(one));
  }
  return distinct;
}

}  // namespace

ModelStages::ModelStages(const model::Workload& whole)
    : whole_(whole),
      distinct_(DistinctStages(whole, order_)),
      messages_(distinct_.front().workload) {}

}  // namespace trainfare::calibrate
