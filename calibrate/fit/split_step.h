#pragma once

// A step of ranks that have a part of the model each (model/split.h): its stages
// one behind the other, and the exchange of its copies, at whatever scalar its
// times have.
// docs/models/splits.md; tests/calibrate/fit/split_step_test.cc.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/fit/rank_mesh.h"
#include "calibrate/fit/rank_pass.h"
#include "calibrate/fit/stage_passes.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
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

  // Those that differ; the first of the pipeline is the first.
  const std::vector<ModelStage>& distinct() const { return distinct_; }
  // Which of these each stage is.
  const std::vector<size_t>& order() const { return order_; }
  const model::Workload& whole() const { return whole_; }
  // Between copies of the first stage, whose gradients come last.
  const RankMessages& messages() const { return messages_; }

 private:
  model::Workload whole_;
  std::vector<size_t> order_;
  std::vector<ModelStage> distinct_;
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

// Stages' passes in the order in which a micro-batch goes through them, chunk
// by chunk.
template <class T>
std::vector<model::PipelinePart<T>> PipelineParts(
    const ModelStages& stages, const std::vector<StagePasses<T>>& passes) {
  const model::Parallel& p = stages.whole().parallel;
  const T chunk_share = T(1.0 / static_cast<double>(p.chunks));
  std::vector<model::PipelinePart<T>> parts;
  parts.reserve(static_cast<size_t>(p.pipeline * p.chunks));
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    for (int64_t stage = 0; stage < p.pipeline; ++stage) {
      const StagePasses<T>& one =
          passes[stages.order()[static_cast<size_t>(stage)]];
      model::PipelinePart<T> part = one.blocks * chunk_share;
      if (chunk == 0 && stage == 0) part = part + one.embeddings;
      if (chunk + 1 == p.chunks && stage + 1 == p.pipeline) {
        part = part + one.head;
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
