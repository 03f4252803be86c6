#pragma once

// A step of ranks that have a part of the model each (model/split.h): what they
// wait for within a layer and between stages, at whatever scalar its times have.
// docs/models/splits.md; tests/calibrate/fit/split_step_test.cc.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/fit/rank_mesh.h"
#include "calibrate/fit/rank_pass.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/error.h"
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
    int64_t count = 1;  // of stages alike
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
  size_t busiest = 0;       // of the distinct stages, that which works most
  model::Seconds<T> sums;   // within its layers, of all micro-batches
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
  const auto micro_batches = static_cast<double>(whole.accumulation);
  struct Passes {
    model::PipelinePart<T> blocks;  // of one chunk
    model::PipelinePart<T> embeddings;
    model::PipelinePart<T> head;
    model::Seconds<T> sums;  // of both
    model::Seconds<T> all;
  };
  std::vector<Passes> passes;
  passes.reserve(steps.size());
  const GroupShape shape = mesh.OfTensor();
  SplitTime<T> split;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ModelStages::Stage& stage = stages.distinct()[i];
    const hardware::StepTime<A>& step = steps[i];
    model::Seconds<T> sum;
    if (p.tensor > 1) sum = TensorSumTime(stage, p.sequence, shape, network);
    const T share = slower * (1.0 / micro_batches);
    const model::Seconds<T> forward_alone = step.forward.total() * share;
    const model::Seconds<T> backward_alone = step.backward.total() * share;
    const auto forward_sums =
        ExposedSums<T>(static_cast<double>(stage.tensor.forward) * sum,
                       forward_alone,
                       p,
                       /*backward=*/false);
    // Blocks that run again sum as in the forward pass.
    const auto backward_sums =
        ExposedSums<T>(static_cast<double>(stage.tensor.again) * sum,
                       forward_alone,
                       p,
                       /*backward=*/false) +
        ExposedSums<T>(static_cast<double>(stage.tensor.backward) * sum,
                       backward_alone,
                       p,
                       /*backward=*/true);
    const model::Seconds<T> forward = forward_alone + forward_sums;
    const model::Seconds<T> backward = backward_alone + backward_sums;
    Passes one;
    one.embeddings = {step.forward_units.embeddings * slower,
                      step.backward_units.embeddings * slower};
    one.head = {step.forward_units.head * slower,
                step.backward_units.head * slower};
    const double chunk = 1.0 / static_cast<double>(p.chunks);
    one.blocks = {
        chunk * (forward - one.embeddings.forward - one.head.forward),
        chunk * (backward - one.embeddings.backward - one.head.backward)};
    one.sums = micro_batches * (forward_sums + backward_sums);
    one.all = forward + backward;
    if (i > 0 && passes[split.busiest].all < one.all) split.busiest = i;
    passes.push_back(one);
  }
  split.sums = passes[split.busiest].sums;
  if (p.pipeline == 1) return split;
  std::vector<model::PipelinePart<T>> parts;
  parts.reserve(static_cast<size_t>(p.pipeline * p.chunks));
  const auto add = [](const model::PipelinePart<T>& to,
                      const model::PipelinePart<T>& more) {
    return model::PipelinePart<T>{to.forward + more.forward,
                                  to.backward + more.backward};
  };
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    for (int64_t stage = 0; stage < p.pipeline; ++stage) {
      const Passes& one = passes[stages.order()[static_cast<size_t>(stage)]];
      model::PipelinePart<T> part = one.blocks;
      if (chunk == 0 && stage == 0) part = add(part, one.embeddings);
      if (chunk + 1 == p.chunks && stage + 1 == p.pipeline) {
        part = add(part, one.head);
      }
      parts.push_back(part);
    }
  }
  split.waits =
      model::PipelinePassTime<T>(parts,
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

}  // namespace trainfare::calibrate
