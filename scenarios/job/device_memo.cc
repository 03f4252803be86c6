#include "scenarios/job/device_memo.h"

#include <initializer_list>
#include <utility>

#include "hardware/models/device_memory.h"
#include "model/parallel.h"
#include "model/sharding.h"

namespace trainfare::scenarios {
namespace {

// Beyond any batch that anybody asks for.
constexpr int64_t kMostBatch = int64_t{1} << 24;

// Ranks that share no state are each as one by itself.
model::Workload OfOneRank(const model::Workload& workload) {
  model::Workload one = workload;
  if (!model::DividesModel(one.parallel) &&
      model::ShardsOf(one.parallel) == 1 && !model::Offloads(one.parallel)) {
    one.parallel = {};
  }
  return one;
}

// The answer to `question`, which `ask` gives where nobody asked it before.
template <class Answers, class Question, class Ask>
auto& AnswerTo(Question&& question, Answers& answers, const Ask& ask) {
  auto found = answers.find(question);
  if (found == answers.end()) {
    auto answer = ask(question);
    found = answers.emplace(std::forward<Question>(question), std::move(answer))
                .first;
  }
  return found->second;
}

}  // namespace

size_t DeviceMemo::Hash::operator()(const model::Workload& w) const {
  size_t hash = 0;
  for (const int64_t part : {w.batch,
                             w.accumulation,
                             w.sequence_length,
                             w.parallel.data,
                             static_cast<int64_t>(w.precision),
                             static_cast<int64_t>(w.work)}) {
    hash = hash * 1'000'003 + static_cast<size_t>(part);
  }
  return hash;
}

const calibrate::StepPrediction& DeviceMemo::Predict(
    const model::Workload& workload) {
  return AnswerTo(OfOneRank(workload), predictions_, [&](const auto& one) {
    return predictor_.Predict(one, source_);
  });
}

const hardware::StepTime<double>& DeviceMemo::PredictTime(
    const model::Workload& workload) {
  model::Workload one = OfOneRank(workload);
  const auto predicted = predictions_.find(one);
  if (predicted != predictions_.end()) return predicted->second.time;
  return AnswerTo(std::move(one), times_, [&](const auto& question) {
    return predictor_.PredictTime(question);
  });
}

const calibrate::RankMessages& DeviceMemo::Messages(
    const model::Workload& workload) {
  model::Workload any = OfOneRank(workload);
  any.batch = any.accumulation = any.sequence_length = 1;
  return AnswerTo(std::move(any), messages_, [](const auto& question) {
    return calibrate::RankMessages(question);
  });
}

const calibrate::ModelStages& DeviceMemo::Stages(
    const model::Workload& workload) {
  return AnswerTo(workload, stages_, [](const auto& question) {
    return calibrate::ModelStages(question);
  });
}

const model::ModelFlops& DeviceMemo::ModelFlops(
    const model::Workload& workload) {
  return AnswerTo(OfOneRank(workload), model_flops_, [](const auto& one) {
    return model::MicroBatchFlopsByPairs(one);
  });
}

const hardware::MemoryPlan& DeviceMemo::PlanMemory(
    const model::Workload& workload,
    int64_t devices,
    int64_t ranks_per_device) {
  Question question{OfOneRank(workload), devices > 1, ranks_per_device};
  return AnswerTo(std::move(question), memory_plans_, [&](const auto& q) {
    return hardware::PlanMemory(
        predictor_.device(), q.workload, devices, ranks_per_device, memory_);
  });
}

std::optional<int64_t> DeviceMemo::LargestBatch(const model::Workload& workload,
                                                int64_t devices,
                                                int64_t ranks_per_device) {
  Question question{OfOneRank(workload), devices > 1, ranks_per_device};
  question.workload.batch = 1;
  return AnswerTo(std::move(question), largest_batches_, [&](const auto& q) {
    return hardware::LargestBatch(predictor_.device(),
                                  q.workload,
                                  kMostBatch,
                                  devices,
                                  ranks_per_device,
                                  memory_);
  });
}

}  // namespace trainfare::scenarios
