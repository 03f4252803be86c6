#include "trainer/training/resolved_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/error.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "model/words.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

}  // namespace

TrainOptions Resolved(TrainOptions options) {
  model::NameUsualMatrices(options.workload.architecture,
                           options.workload.trainable);
  model::NameAllMatrices(options.workload.architecture,
                         options.workload.stack.fusion,
                         options.workload.trainable);
  if (options.workload.parallel.shard != model::Shard::kNone) {
    const std::string asked =
        fmt::format("--shard {}: expected ",
                    model::ToText(options.workload.parallel.shard));
    if (options.workload.precision == model::Precision::kFp16) {
      throw InputError(asked + "--precision fp32, tf32 or bf16, got fp16");
    }
    if (!options.checkpoint.empty()) {
      throw InputError(asked +
                       "no --checkpoint, got one; hint: --save keeps the "
                       "weights at the end");
    }
  }
  if (options.batch_tokens == 0) return options;
  if (options.batch_tokens < options.workload.sequence_length) {
    throw InputError(
        fmt::format("--batch-tokens: expected at least --length ({}), got {}",
                    options.workload.sequence_length,
                    options.batch_tokens));
  }
  options.workload.batch =
      options.batch_tokens / options.workload.sequence_length;
  return options;
}

model::Workload WorkloadOf(const TrainOptions& options,
                           const model::Architecture& architecture,
                           const Share& share) {
  model::Workload workload = options.workload;
  workload.architecture = architecture;
  workload.optimizer.by_layer = options.layer_decay != 1.0;
  if (workload.stack.narrow_weights) {
    workload.optimizer.masters = model::Masters::kInUpdate;
  }
  if (workload.parallel.shard != model::Shard::kNone) {
    workload.parallel = model::OverDevices(
        workload.parallel, static_cast<int64_t>(share.world_size));
  }
  model::Validate(workload);
  ParameterType(workload);  // throws where weights cannot be narrow
  return workload;
}

OptimizerOptions OptimizerOf(const TrainOptions& options) {
  OptimizerOptions optimizer;
  optimizer.kind = options.workload.optimizer;
  optimizer.weight_decay = options.weight_decay;
  optimizer.layer_decay = options.layer_decay;
  optimizer.largest_gradient_norm = options.largest_gradient_norm;
  return optimizer;
}

uint64_t DropoutSeed(const TrainOptions& options, const Share& share) {
  return options.seed + share.rank;
}

int64_t StepsOf(const TrainOptions& options, const Feed& feed) {
  const int64_t an_epoch =
      (feed.batches() + options.workload.accumulation - 1) /
      options.workload.accumulation;
  return options.steps.value_or(options.epochs * an_epoch);
}

double LearningRate(const TrainOptions& options, int64_t step, int64_t steps) {
  const double warmup =
      std::floor(options.warmup_fraction * static_cast<double>(steps));
  const auto at = static_cast<double>(step);
  if (at < warmup) return options.learning_rate * (at + 1) / (warmup + 1);
  return options.learning_rate * (static_cast<double>(steps) - at) /
         std::max(static_cast<double>(steps) - warmup, 1.0);
}

}  // namespace trainfare::trainer
