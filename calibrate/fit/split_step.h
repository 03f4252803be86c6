#pragma once

// A step of ranks that have a part of the model each (model/split.h): what they
// wait for within a layer and between stages, at whatever scalar its times have.
// docs/models/splits.md; tests/calibrate/fit/split_step_test.cc.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/fit/rank_mesh.h"
#include "calibrate/fit/rank_pass.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/error.h"
#include "model/expert_routing.h"
#include "model/pipeline.h"
#include "model/split.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The stages of a workload: what a rank of each computes and sends, counted once
// for every time and network that is asked about.
class ModelStages {
 public:
  // `whole.parallel` is known: data is their number.
  explicit ModelStages(const model::Workload& whole);

  struct Stage {
    model::Workload workload;  // of one of its ranks
    model::TensorMessages tensor;
    model::ContextMessages context;
    model::ExpertMessages expert;
  };
  // Those that differ; the first of the pipeline is the first.
  const std::vector<Stage>& distinct() const { return distinct_; }
  // Which of these each stage is.
  const std::vector<size_t>& order() const { return order_; }
  const model::Workload& whole() const { return whole_; }
  // Between copies of the first stage, whose gradients come last.
  const RankMessages& messages() const { return messages_; }

 private:
  model::Workload whole_;
  std::vector<size_t> order_;
  std::vector<Stage> distinct_;
  RankMessages messages_;
};

// What the ranks of one copy of a model wait for, beside what they compute.
template <class T>
struct SplitTime {
  size_t busiest = 0;  // of the distinct stages, that which works most
  // Within its layers and sequences and between its experts, of all
  // micro-batches, what nothing hides.
  model::Seconds<T> sums;
  model::Seconds<T> waits;  // for other stages, and what they send
};

// A collective of hidden states within a layer: an all-reduce, or a gather or a
// sum that scatters, which come in pairs.
template <class T>
model::Seconds<T> TensorSumTime(const ModelStages::Stage& stage,
                                bool sequence,
                                const GroupShape& shape,
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

// What a stage waits for until the one before it has sent hidden states.
template <class T>
model::Seconds<T> BetweenStagesTime(const model::Workload& whole,
                                    const RankMesh& mesh,
                                    const model::RankNetwork<T>& network) {
  const model::Bytes<> size = model::SentBetweenStages(whole);
  const auto over = [&](const model::RingLevel<T>& level) {
    return level.step_latency + size / level.link;
  };
  const double between = mesh.BetweenHosts();
  if (between == 0.0) return over(network.alone);
  return (1.0 - between) * over(network.alone) + between * over(network.across);
}

// What of so many sums nothing hides, beside `computed` of the same pass. Those in
// as many parts as there are ranks show one of these, and what is longer than the
// products that they go beside; those beside gradients of weights, which are half
// of what a pass backward computes, what is longer than these.
template <class T>
model::Seconds<T> ExposedSums(model::Seconds<T> sums,
                              model::Seconds<T> computed,
                              const model::Parallel& parallel,
                              bool backward) {
  const auto beyond = [&](model::Seconds<T> hidden, double share) {
    const model::Seconds<T> room = share * computed;
    return hidden > room ? hidden - room : model::Seconds<T>();
  };
  switch (parallel.tensor_overlap) {
    case model::TensorOverlap::kNone:
      return sums;
    case model::TensorOverlap::kGradients:
      return backward ? beyond(sums, 0.5) : sums;
    case model::TensorOverlap::kProducts: {
      const double first = 1.0 / static_cast<double>(parallel.tensor);
      return first * sums + beyond((1.0 - first) * sums, 1.0);
    }
  }
  ENSURE(false, "an overlap without a time");
}

// What of sums within layers nothing hides, beside `computed`.
template <class T>
model::PipelinePart<T> ExposedWithinLayers(
    const ModelStages::Stage& stage,
    const model::Parallel& parallel,
    const model::PipelinePart<T>& computed,
    const RankMesh& mesh,
    const model::RankNetwork<T>& network) {
  if (parallel.tensor == 1) return {};
  const model::Seconds<T> sum =
      TensorSumTime(stage, parallel.sequence, mesh.OfTensor(), network);
  const auto exposed =
      [&](int64_t sums, model::Seconds<T> beside, bool backward) {
        return ExposedSums<T>(
            static_cast<double>(sums) * sum, beside, parallel, backward);
      };
  const model::TensorMessages& tensor = stage.tensor;
  // Blocks that run again sum as in the forward pass.
  return {exposed(tensor.forward, computed.forward, false),
          exposed(tensor.again, computed.forward, false) +
              exposed(tensor.backward, computed.backward, true)};
}

// What of keys and values that go round nothing hides: what takes longer than
// the cores of attention of `blocks`, each of which computes with those that it
// has while the next ones come.
template <class T>
model::PipelinePart<T> ExposedWithinSequences(
    const ModelStages::Stage& stage,
    const model::PipelinePart<T>& blocks,
    const RankMesh& mesh,
    const model::RankNetwork<T>& network) {
  if (mesh.context == 1) return {};
  const model::ContextMessages& context = stage.context;
  const GroupShape shape = mesh.OfContext();
  const model::Seconds<T> round = model::RoundTime(
      shape.in_host, shape.hosts, context.keys, network.alone, network.across);
  const auto exposed = [&](int64_t rounds, model::Seconds<T> beside) {
    const model::Seconds<T> sent = static_cast<double>(rounds) * round;
    const model::Seconds<T> core = context.core * beside;
    return sent > core ? sent - core : model::Seconds<T>();
  };
  return {exposed(context.forward, blocks.forward),
          exposed(context.backward, blocks.backward)};
}

// One exchange of a block's tokens between experts.
template <class T>
model::Seconds<T> ExchangeTime(const model::ExpertMessages& expert,
                               const GroupShape& shape,
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
model::PipelinePart<T> BetweenExperts(const ModelStages::Stage& stage,
                                      const model::Workload& whole,
                                      const model::PipelinePart<T>& blocks,
                                      const RankMesh& mesh,
                                      const model::RankNetwork<T>& network) {
  if (mesh.expert == 1) return {};
  const model::Seconds<T> exchange =
      ExchangeTime(stage.expert, mesh.OfExpert(), network);
  const double alone = whole.parallel.expert_overlap
                           ? 1.0 / static_cast<double>(whole.accumulation)
                           : 1.0;
  const auto exposed = [&](int64_t exchanges, model::Seconds<T> beside) {
    const model::Seconds<T> sent = static_cast<double>(exchanges) * exchange;
    const model::Seconds<T> beyond =
        sent > beside ? sent - beside : model::Seconds<T>();
    return alone * sent + (1.0 - alone) * beyond;
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
    return blocks.forward + blocks.backward + embeddings.forward +
           embeddings.backward + head.forward + head.backward;
  }
};

// `step`: of one of its ranks, alone with its device, of all micro-batches.
template <class T, class A>
StagePasses<T> PassesOf(const ModelStages::Stage& stage,
                        const model::Workload& whole,
                        const hardware::StepTime<A>& step,
                        const RankMesh& mesh,
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
  const model::PipelinePart<T> blocks{
      computed.forward - passes.embeddings.forward - passes.head.forward,
      computed.backward - passes.embeddings.backward - passes.head.backward};
  const model::PipelinePart<T> layers =
      ExposedWithinLayers(stage, whole.parallel, computed, mesh, network);
  const model::PipelinePart<T> sequences =
      ExposedWithinSequences(stage, blocks, mesh, network);
  const model::PipelinePart<T> experts =
      BetweenExperts(stage, whole, blocks, mesh, network);
  const model::PipelinePart<T> exposed{
      layers.forward + sequences.forward + experts.forward,
      layers.backward + sequences.backward + experts.backward};
  passes.blocks = {blocks.forward + exposed.forward,
                   blocks.backward + exposed.backward};
  passes.sums = exposed.forward + exposed.backward;
  return passes;
}

// Stages' passes in the order in which a micro-batch goes through them, chunk
// by chunk.
template <class T>
std::vector<model::PipelinePart<T>> PipelineParts(
    const ModelStages& stages, const std::vector<StagePasses<T>>& passes) {
  const model::Parallel& p = stages.whole().parallel;
  const double chunk_share = 1.0 / static_cast<double>(p.chunks);
  std::vector<model::PipelinePart<T>> parts;
  parts.reserve(static_cast<size_t>(p.pipeline * p.chunks));
  const auto add = [](const model::PipelinePart<T>& to,
                      const model::PipelinePart<T>& more) {
    return model::PipelinePart<T>{to.forward + more.forward,
                                  to.backward + more.backward};
  };
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    for (int64_t stage = 0; stage < p.pipeline; ++stage) {
      const StagePasses<T>& one =
          passes[stages.order()[static_cast<size_t>(stage)]];
      model::PipelinePart<T> part{chunk_share * one.blocks.forward,
                                  chunk_share * one.blocks.backward};
      if (chunk == 0 && stage == 0) part = add(part, one.embeddings);
      if (chunk + 1 == p.chunks && stage + 1 == p.pipeline) {
        part = add(part, one.head);
      }
      parts.push_back(part);
    }
  }
  return parts;
}

// `steps`: of one rank of each distinct stage, alone with its device; beside
// others it takes `slower` times as long.
template <class T, class A>
SplitTime<T> SplitBy(const ModelStages& stages,
                     std::span<const hardware::StepTime<A>> steps,
                     const RankMesh& mesh,
                     const model::RankNetwork<T>& network,
                     const T& slower) {
  const model::Workload& whole = stages.whole();
  const model::Parallel& p = whole.parallel;
  std::vector<StagePasses<T>> passes;
  passes.reserve(steps.size());
  SplitTime<T> split;
  for (size_t i = 0; i < steps.size(); ++i) {
    passes.push_back(PassesOf<T, A>(
        stages.distinct()[i], whole, steps[i], mesh, network, slower));
    if (passes[split.busiest].all() < passes[i].all()) split.busiest = i;
  }
  split.sums =
      static_cast<double>(whole.accumulation) * passes[split.busiest].sums;
  if (p.pipeline == 1) return split;
  split.waits =
      model::PipelinePassTime<T>(PipelineParts(stages, passes),
                                 {p.pipeline, p.chunks, whole.accumulation},
                                 BetweenStagesTime(whole, mesh, network))
          .waiting();
  return split;
}

// The step that stands for all stages: passes of the busiest, the longest
// update.
template <class A>
hardware::StepTime<A> StepOfStages(std::span<const hardware::StepTime<A>> steps,
                                   size_t busiest) {
  hardware::StepTime<A> step = steps[busiest];
  for (const hardware::StepTime<A>& other : steps) {
    if (step.optimizer.total() < other.optimizer.total()) {
      step.optimizer = other.optimizer;
    }
  }
  return step;
}

// A rank's step beside those that have its model together, and the copies of it.
template <class T, class A>
struct DividedStep {
  hardware::StepTime<A> alone;  // that stands for all stages
  AddedTime<T> added;           // what they send and wait for
  model::Seconds<T> waits;      // of this, for other stages
};

// `network` joins all of them; other arguments as of SplitBy and AddedBy.
template <class T, class A>
DividedStep<T, A> StepOfDivided(const ModelStages& stages,
                                std::span<const hardware::StepTime<A>> steps,
                                const RankMesh& mesh,
                                model::RankNetwork<T> network,
                                const UnhiddenUnits<T>& unhidden,
                                const T& slower) {
  const SplitTime<T> split =
      SplitBy<T, A>(stages, steps, mesh, network, slower);
  DividedStep<T, A> step{
      StepOfStages<A>(steps, split.busiest), {}, split.waits};
  if (mesh.data > 1) {
    network.hosts = mesh.OfData().hosts;
    step.added = AddedBy<T, A>(stages.distinct().front().workload,
                               stages.messages(),
                               steps.front(),
                               network,
                               mesh.data,
                               std::nullopt,  // such models offload nothing
                               unhidden,
                               slower,
                               mesh.OfExpertData());
  }
  step.added.exposed += split.sums;
  step.added.all += split.sums + split.waits;
  return step;
}

}  // namespace trainfare::calibrate
