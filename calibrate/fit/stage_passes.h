#pragma once

// A micro-batch's passes of one stage, and what they wait for within it: sums
// within layers, keys and values that go round, exchanges between experts.
// docs/models/splits.md; tests/calibrate/fit/split_step_test.cc.

#include <cstdint>

#include "calibrate/fit/rank_placement.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/error.h"
#include "model/expert_routing.h"
#include "model/overlap.h"
#include "model/pipeline.h"
#include "model/split.h"
#include "model/trainable.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// One stage of a pipeline, or all of a model that has none: what one of its
// ranks computes and sends.
struct ModelStage {
  model::Workload workload;
  model::TensorMessages tensor;
  model::ContextMessages context;
  model::ExpertMessages expert;
};

// A collective of hidden states within a layer: an all-reduce, or a gather or a
// sum that scatters, which come in pairs.
template <class T>
model::Seconds<T> TensorSumTime(const ModelStage& stage,
                                bool sequence,
                                const model::GroupShape& shape,
                                const model::RankNetwork<T>& network) {
  const model::Bytes<> size = stage.tensor.hidden;
  if (sequence) {
    return (network.gather + network.reduce_scatter) *
           model::GatherOverHostsTime(
               shape.in_host, shape.hosts, size, network.alone, network.across);
  }
  return model::AllReduceTime(
      shape.in_host, shape.hosts, size, network.alone, network.across);
}

// What of a pass backward makes gradients of weights: half of it; none beside
// adapters, where sums are waited for (Megatron-Core's LinearWithFrozenWeight).
inline double ShareOfWeightGradients(const model::Workload& workload) {
  return workload.trainable.lora_rank > 0 ? 0.0 : 0.5;
}

// What of so many sums nothing hides, beside `computed` of the same pass. Those in
// as many parts as there are ranks show one of these, and what is longer than the
// products that they go beside; those beside gradients of weights, which are
// `of_weights` of what is computed, what is longer than these.
template <class T>
model::Seconds<T> ExposedSums(model::Seconds<T> sums,
                              model::Seconds<T> computed,
                              const model::Parallel& parallel,
                              double of_weights) {
  switch (parallel.tensor_overlap) {
    case model::TensorOverlap::kNone:
      return sums;
    case model::TensorOverlap::kGradients:
      return model::LongerThan<T>(sums, of_weights * computed);
    case model::TensorOverlap::kProducts: {
      const double first = 1.0 / static_cast<double>(parallel.tensor);
      return first * sums +
             model::LongerThan<T>((1.0 - first) * sums, computed);
    }
  }
  ENSURE(false, "an overlap without a time");
}

// What of sums within layers nothing hides, beside `computed`, of which the pass
// backward has what runs again of `blocks`.
template <class T>
model::PipelinePart<T> ExposedWithinLayers(
    const ModelStage& stage,
    const model::Parallel& parallel,
    const model::PipelinePart<T>& computed,
    const model::PipelinePart<T>& blocks,
    const RankPlacement& placement,
    const model::RankNetwork<T>& network) {
  if (parallel.tensor == 1) return {};
  const model::Seconds<T> sum =
      TensorSumTime(stage, parallel.sequence, placement.OfTensor(), network);
  const auto exposed =
      [&](int64_t sums, model::Seconds<T> beside, double of_weights) {
        return ExposedSums<T>(
            static_cast<double>(sums) * sum, beside, parallel, of_weights);
      };
  const model::TensorMessages& tensor = stage.tensor;
  const model::Workload& w = stage.workload;
  // Blocks that run again sum as in the forward pass.
  const model::Seconds<T> again =
      static_cast<double>(model::BlocksComputedAgain(w)) /
      static_cast<double>(w.architecture.blocks()) * blocks.forward;
  return {
      exposed(tensor.forward, computed.forward, 0.0),
      exposed(tensor.again, again, 0.0) + exposed(tensor.backward,
                                                  computed.backward - again,
                                                  ShareOfWeightGradients(w))};
}

// What of keys and values that go round nothing hides: what takes longer than
// the cores of attention of `blocks`, each of which computes with those that it
// has while the next ones come.
template <class T>
model::PipelinePart<T> ExposedWithinSequences(
    const ModelStage& stage,
    const model::PipelinePart<T>& blocks,
    const RankPlacement& placement,
    const model::RankNetwork<T>& network) {
  const model::ContextMessages& context = stage.context;
  const model::GroupShape shape = placement.OfContext();
  if (shape.ranks() == 1) return {};
  const model::Seconds<T> round = model::RoundTime(
      shape.in_host, shape.hosts, context.keys, network.alone, network.across);
  const auto exposed = [&](int64_t rounds, model::Seconds<T> beside) {
    return model::LongerThan<T>(static_cast<double>(rounds) * round,
                                context.core * beside);
  };
  return {exposed(context.forward, blocks.forward),
          exposed(context.backward, blocks.backward)};
}

// One exchange of a block's tokens between experts.
template <class T>
model::Seconds<T> ExchangeTime(const model::ExpertMessages& expert,
                               const model::GroupShape& shape,
                               const model::RankNetwork<T>& network) {
  switch (expert.exchange) {
    case model::ExpertExchange::kAllToAll:
      return model::AllToAllTime(shape.in_host,
                                 shape.hosts,
                                 expert.rows,
                                 network.alone,
                                 network.across);
    case model::ExpertExchange::kByHost:
      return model::RowsByHostTime(
          shape.in_host,
          shape.hosts,
          expert.once,
          model::PlacesOfToken(expert.routing, shape.in_host * shape.hosts),
          model::PlacesOfToken(expert.routing, shape.hosts),
          network.alone,
          network.across);
  }
  ENSURE(false, "an exchange without a time");
}

// What of exchanges between experts nothing hides. Beside those of another
// micro-batch, which goes the other way, they show what is longer than its
// `blocks`; the first to come and the last to leave have none beside them.
template <class T>
model::PipelinePart<T> BetweenExperts(const ModelStage& stage,
                                      const model::Workload& whole,
                                      const model::PipelinePart<T>& blocks,
                                      const RankPlacement& placement,
                                      const model::RankNetwork<T>& network) {
  const model::GroupShape shape = placement.OfExpert();
  if (shape.ranks() == 1) return {};
  const model::Seconds<T> exchange = ExchangeTime(stage.expert, shape, network);
  const double alone = whole.parallel.expert_overlap
                           ? 1.0 / static_cast<double>(whole.accumulation)
                           : 1.0;
  const auto exposed = [&](int64_t exchanges, model::Seconds<T> beside) {
    const model::Seconds<T> sent = static_cast<double>(exchanges) * exchange;
    return alone * sent + (1.0 - alone) * model::LongerThan<T>(sent, beside);
  };
  return {exposed(stage.expert.forward, blocks.backward),
          exposed(stage.expert.backward, blocks.forward)};
}

// A micro-batch's passes of a stage, with what they wait for within it.
template <class T>
struct StagePasses {
  model::PipelinePart<T> blocks;  // all of them
  model::PipelinePart<T> embeddings;
  model::PipelinePart<T> head;
  model::Seconds<T> sums;  // in these blocks
  model::Seconds<T> all() const {
    return blocks.total() + embeddings.total() + head.total();
  }
};

// `step`: of one of its ranks, alone with its device, of all micro-batches.
template <class T, class A>
StagePasses<T> PassesOf(const ModelStage& stage,
                        const model::Workload& whole,
                        const hardware::StepTime<A>& step,
                        const RankPlacement& placement,
                        const model::RankNetwork<T>& network,
                        const T& slower) {
  const T share = slower * (1.0 / static_cast<double>(whole.accumulation));
  const model::PipelinePart<T> computed{step.forward.total() * share,
                                        step.backward.total() * share};
  StagePasses<T> passes;
  passes.embeddings = {step.forward_units.embeddings * slower,
                       step.backward_units.embeddings * slower};
  passes.head = {step.forward_units.head * slower,
                 step.backward_units.head * slower};
  const model::PipelinePart<T> blocks =
      computed - passes.embeddings - passes.head;
  const model::PipelinePart<T> exposed =
      ExposedWithinLayers(
          stage, whole.parallel, computed, blocks, placement, network) +
      ExposedWithinSequences(stage, blocks, placement, network) +
      BetweenExperts(stage, whole, blocks, placement, network);
  passes.blocks = blocks + exposed;
  passes.sums = exposed.total();
  return passes;
}

}  // namespace trainfare::calibrate
