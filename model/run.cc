#include "model/run.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/error.h"
#include "model/rounding.h"

namespace trainfare::model {
namespace {

// What one pass over `samples` takes. Full batches and one that is not.
struct DataPass {
  Seconds<> time;
  Seconds<> input_wait;
  double tokens = 0;
};

// The last step of a pass over the data, where it is not a full one: its samples
// over all devices, in how many micro-batches of how many each has them.
struct LastStep {
  int64_t samples = 0;
  int64_t micro_batches = 0;
  int64_t batch = 0;
};

std::optional<LastStep> LastStepOf(const RunPlan& plan,
                                   int64_t samples,
                                   int64_t accumulation,
                                   bool drop_last) {
  const int64_t rest = samples % (plan.batch * accumulation * plan.devices);
  if (drop_last || rest == 0) return std::nullopt;
  const int64_t per_device = CeilDivide(rest, plan.devices);
  const int64_t micro_batches = CeilDivide(per_device, plan.batch);
  return LastStep{rest, micro_batches, CeilDivide(per_device, micro_batches)};
}

const std::vector<PaddedLength>& OwnLengths(const RunPlan& plan) {
  return plan.own_lengths.empty() ? plan.lengths : plan.own_lengths;
}

DataPass PassOver(const RunPlan& plan,
                  const std::vector<PaddedLength>& lengths,
                  int64_t samples,
                  int64_t accumulation,
                  bool drop_last,
                  const StepTimeOf& step_time) {
  const int64_t per_step = plan.batch * accumulation * plan.devices;
  const int64_t full = samples / per_step;

  const double own_length = MeanLength(OwnLengths(plan));
  DataPass pass;
  const auto add = [&](double times,
                       int64_t batch,
                       int64_t micro_batches,
                       int64_t step_samples) {
    for (const PaddedLength& length : lengths) {
      const Seconds<> load = plan.Loading(
          static_cast<double>(step_samples),
          static_cast<double>(batch * micro_batches * length.length));
      const Seconds<> busy = step_time(batch, micro_batches, length.length);
      const Seconds<> step = std::max(busy, load);
      const double steps = times * length.share;
      pass.time += step * steps;
      pass.input_wait += (step - busy) * steps;
      pass.tokens += steps * static_cast<double>(step_samples) * own_length;
    }
  };
  if (full > 0) {
    add(static_cast<double>(full), plan.batch, accumulation, per_step);
  }
  if (const auto last = LastStepOf(plan, samples, accumulation, drop_last)) {
    add(1.0, last->batch, last->micro_batches, last->samples);
  }
  return pass;
}

// What an epoch shows a compiler: lengths of full micro-batches, and those of
// the last step where its micro-batches are smaller.
double ShapesOfPass(const RunPlan& plan,
                    int64_t samples,
                    int64_t accumulation,
                    bool drop_last) {
  const int64_t per_step = plan.batch * accumulation * plan.devices;
  const int64_t full_steps = samples / per_step;
  const auto full = static_cast<double>(full_steps);
  const auto last = LastStepOf(plan, samples, accumulation, drop_last);
  const auto epochs = static_cast<double>(plan.epochs);
  const bool alike = last && last->batch == plan.batch;
  const std::vector<PaddedLength>& lengths = OwnLengths(plan);
  double shapes =
      ExpectedDistinctLengths(lengths, (alike ? full + 1.0 : full) * epochs);
  if (last && !alike) shapes += ExpectedDistinctLengths(lengths, epochs);
  return shapes;
}

// How often the shape changes between steps that draw their lengths one by one.
double ShapeChanges(const std::vector<PaddedLength>& lengths, double steps) {
  double same = 0;
  for (const PaddedLength& length : lengths)
    same += length.share * length.share;
  return 1.0 + std::max(0.0, steps - 1.0) * std::max(0.0, 1.0 - same);
}

}  // namespace

int64_t StepsPerEpoch(const RunPlan& plan) {
  const int64_t per_step = plan.batch * plan.accumulation * plan.devices;
  return plan.drop_last ? plan.train_samples / per_step
                        : CeilDivide(plan.train_samples, per_step);
}

RunTimes EstimateRun(const RunPlan& plan,
                     const StepTimeOf& training_step,
                     const StepTimeOf& evaluation_step) {
  ENSURE(plan.batch >= 1 && plan.accumulation >= 1 && plan.devices >= 1 &&
             plan.epochs >= 1 && !plan.lengths.empty(),
         "a run has steps");
  const auto epochs = static_cast<double>(plan.epochs);
  RunTimes run;
  run.steps_per_epoch = StepsPerEpoch(plan);
  run.start_up = plan.start_up;

  const DataPass training = PassOver(plan,
                                     plan.lengths,
                                     plan.train_samples,
                                     plan.accumulation,
                                     plan.drop_last,
                                     training_step);
  run.training = training.time * epochs;
  run.input_wait = training.input_wait * epochs;
  run.tokens = training.tokens * epochs;
  run.distinct_shapes =
      ShapesOfPass(plan, plan.train_samples, plan.accumulation, plan.drop_last);

  run.shape_changes = ShapeChanges(
      OwnLengths(plan), static_cast<double>(run.steps_per_epoch) * epochs);

  if (plan.eval_samples > 0) {
    run.evaluation = PassOver(plan,
                              OwnLengths(plan),
                              plan.eval_samples,
                              plan.eval_micro_batches,
                              false,
                              evaluation_step)
                         .time *
                     epochs;
    run.distinct_shapes +=
        ShapesOfPass(plan, plan.eval_samples, plan.eval_micro_batches, false);
  }
  run.checkpoint = plan.checkpoint * epochs;
  if (!plan.warm_cache) {
    run.compile = plan.compile_per_shape * run.distinct_shapes;
  }
  return run;
}

}  // namespace trainfare::model
