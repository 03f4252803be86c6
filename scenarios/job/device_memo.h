#pragma once

// What estimates on one device have in common, whatever its host is and what
// joins it to others: a catalog asks for the same step time and again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/split_step.h"
#include "hardware/models/memory_plan.h"
#include "hardware/models/step_time.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/workload.h"

namespace trainfare::scenarios {

// Every answer is computed once and kept. For one thread.
class DeviceMemo {
 public:
  // `predictor` must outlive it, which is asked about devices of `source`.
  explicit DeviceMemo(const calibrate::Predictor& predictor,
                      std::string_view source = calibrate::kOwnSource)
      : predictor_(predictor), source_(source) {}

  const calibrate::Predictor& predictor() const { return predictor_; }

  // As Predictor has them.
  const calibrate::StepPrediction& Predict(const model::Workload& workload);
  const hardware::StepTime<double>& PredictTime(
      const model::Workload& workload);

  // What one of the workload's ranks sends, whatever its batch and length.
  const calibrate::RankMessages& Messages(const model::Workload& workload);

  // The same of stages that have a part of the model each.
  const calibrate::ModelStages& Stages(const model::Workload& workload);

  // FLOPs of a micro-batch as MFU counts them, of all that is asked to run.
  const model::ModelFlops& ModelFlops(const model::Workload& workload);

  // The plan of one of `devices` ranks, `ranks_per_device` of which share a
  // device's memory; for the largest batch the workload's own does not matter.
  const hardware::MemoryPlan& PlanMemory(const model::Workload& workload,
                                         int64_t devices,
                                         int64_t ranks_per_device);
  std::optional<int64_t> LargestBatch(const model::Workload& workload,
                                      int64_t devices,
                                      int64_t ranks_per_device);

 private:
  // The workload, and how memory is shared where that is asked about.
  struct Question {
    model::Workload workload;
    bool has_others = false;
    int64_t ranks_per_device = 1;
    friend bool operator==(const Question&, const Question&) = default;
  };
  // By what differs among the candidates of one job.
  struct Hash {
    size_t operator()(const model::Workload& workload) const;
    size_t operator()(const Question& question) const {
      return (*this)(question.workload);
    }
  };
  template <class Key, class Answer>
  using Answers = std::unordered_map<Key, Answer, Hash>;

  const calibrate::Predictor& predictor_;
  const std::string source_;
  Answers<model::Workload, calibrate::StepPrediction> predictions_;
  Answers<model::Workload, hardware::StepTime<double>> times_;
  Answers<model::Workload, calibrate::RankMessages> messages_;
  Answers<model::Workload, calibrate::ModelStages> stages_;
  Answers<model::Workload, model::ModelFlops> model_flops_;
  model::MemoryOfBatches memory_;
  Answers<Question, hardware::MemoryPlan> memory_plans_;
  Answers<Question, std::optional<int64_t>> largest_batches_;
};

}  // namespace trainfare::scenarios
