#include "calibrate/records/import/published_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

template <class T>
const T& Stated(const std::optional<T>& value, std::string_view what) {
  if (!value) throw InputError(fmt::format("{} not stated", what));
  return *value;
}

}  // namespace

model::Workload WorkloadOf(const PublishedRun& run) {
  model::Workload w;
  w.architecture = Stated(run.architecture, "the model is");
  w.work = run.work;
  w.batch = Stated(run.batch, "the batch is");
  w.accumulation = run.accumulation;
  w.sequence_length = Stated(run.sequence_length, "the sequence length is");
  w.precision = Stated(run.precision, "the precision is");
  w.predictions_per_sequence = run.predictions_per_sequence.value_or(0);
  w.gradient_checkpointing = run.gradient_checkpointing;
  w.stack.fusion = Stated(run.fusion, "the software is");
  w.stack.compiler_level = run.compiler_level;
  w.stack.stochastic_rounding = run.stochastic_rounding;
  if (run.work == model::Work::kForward) {
    w.optimizer.kind = model::OptimizerKind::kNone;
  } else {
    const PublishedOptimizer& optimizer =
        Stated(run.optimizer, "the optimizer is");
    w.optimizer.kind = optimizer.kind;
    w.optimizer.implementation =
        Stated(optimizer.implementation, "how the update is implemented is");
    w.optimizer.by_layer = run.layer_decay;
    if (optimizer.single_tensor &&
        w.optimizer.implementation == model::OptimizerImplementation::kFused) {
      throw InputError("a fused update of one tensor at a time is not known");
    }
  }
  model::Validate(w);
  return w;
}

int64_t EpochSamples(const Published& published,
                     const PublishedRun& run,
                     const KeepRun& keep) {
  const CountRange& range = Stated(run.train_samples, "the samples are");
  double sum = 0;
  int64_t seen = 0;
  for (const std::string& name : run.samples_from) {
    const PublishedRow* whole = published.Find(name + "/run_time");
    const PublishedRow* step = published.Find(name + "/step_time");
    const PublishedRun& other = published.runs.at(name);
    if (whole == nullptr || step == nullptr || !other.batch || !other.epochs ||
        published.Same(name, run.name) || (keep && !keep(other))) {
      continue;
    }
    sum += whole->value.low / step->value.low *
           static_cast<double>(*other.batch * other.device_count) /
           static_cast<double>(*other.epochs);
    ++seen;
  }
  const double least = static_cast<double>(range.least);
  const double most = static_cast<double>(range.most);
  return std::llround(
      seen == 0 ? 0.5 * (least + most)
                : std::clamp(sum / static_cast<double>(seen), least, most));
}

model::RunPlan PlanOf(const Published& published,
                      const PublishedRun& run,
                      const KeepRun& keep) {
  model::RunPlan plan;
  plan.batch = Stated(run.batch, "the batch is");
  plan.accumulation = run.accumulation;
  plan.devices = run.device_count;
  if (run.samples_in_run) {
    plan.train_samples = *run.samples_in_run;
  } else if (run.steps) {
    plan.train_samples =
        *run.steps * plan.batch * plan.accumulation * plan.devices;
  } else {
    plan.train_samples = EpochSamples(published, run, keep);
    plan.epochs = Stated(run.epochs, "the epochs are");
  }
  return plan;
}

}  // namespace trainfare::calibrate
