#pragma once

// A step of ranks that train together, with a part of the model each
// (model/split.h) or all of it: its stages one behind the other, and the exchange
// of its copies, at whatever scalar its times have.
// docs/models/splits.md; tests/calibrate/fit/split_step_test.cc.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/fit/rank_pass.h"
#include "calibrate/fit/rank_placement.h"
#include "calibrate/fit/stage_passes.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/parallel.h"
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
                                    const RankPlacement& placement,
                                    const model::RankNetwork<T>& network) {
  const auto over = [&](const model::RingLevel<T>& level) {
    return model::PointToPointTime(
        model::SentBetweenStages(whole), level.step_latency, level.link);
  };
  const double between = placement.BetweenHosts();
  if (between == 0.0) return over(network.alone);
  return (1.0 - between) * over(network.alone) + between * over(network.across);
}

// Behind the last micro-batch the first and the last stage sum what both have of
// the gradient of the table that looks tokens up and makes logits (Megatron-Core's
// finalize_model_grads).
template <class T>
model::Seconds<T> TiedTableTime(const model::Workload& whole,
                                const RankPlacement& placement,
                                const model::RankNetwork<T>& network) {
  const model::Bytes<> size = model::SummedOfTiedTable(whole);
  if (size == model::Bytes<>()) return {};
  const bool in_host = placement.BetweenHosts() == 0.0;
  return model::AllReduceTime(
      in_host ? 2 : 1, in_host ? 1 : 2, size, network.alone, network.across);
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
                     const RankPlacement& placement,
                     const model::RankNetwork<T>& network,
                     const T& slower) {
  const model::Workload& whole = stages.whole();
  const model::Parallel& p = whole.parallel;
  std::vector<StagePasses<T>> passes;
  passes.reserve(steps.size());
  SplitTime<T> split;
  for (size_t i = 0; i < steps.size(); ++i) {
    passes.push_back(PassesOf<T, A>(
        stages.distinct()[i], whole, steps[i], placement, network, slower));
    if (passes[split.busiest].all() < passes[i].all()) split.busiest = i;
  }
  split.sums =
      static_cast<double>(whole.accumulation) * passes[split.busiest].sums;
  if (p.pipeline == 1) return split;
  split.waits =
      model::PipelinePassTime<T>(PipelineParts(stages, passes),
                                 {p.pipeline,
                                  p.chunks,
                                  whole.accumulation,
                                  whole.work == model::Work::kForward},
                                 BetweenStagesTime(whole, placement, network))
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

// A rank's step beside the others.
template <class T, class A>
struct StepBesideOthers {
  hardware::StepTime<A> alone;  // that stands for all stages
  AddedTime<T> added;           // what it sends and waits for
  model::Seconds<T> waits;      // of this, for other stages
};

// Ranks that train together: each has all of a model, or they divide it.
class JoinedRanks {
 public:
  // Of a workload that none divides; what is handed over must outlive them.
  JoinedRanks(const model::Workload& workload, const RankMessages& messages)
      : workload_(&workload), messages_(&messages) {}
  // Whether they divide it or not; the stages must outlive them.
  JoinedRanks(const ModelStages& stages, const RankPlacement& placement)
      : JoinedRanks(stages.distinct().front().workload, stages.messages()) {
    if (model::DividesModel(stages.whole().parallel)) {
      division_.emplace(Division{&stages, placement});
    }
  }

  // As one of them sees it, of the first stage; between copies of that.
  const model::Workload& workload() const { return *workload_; }
  const RankMessages& messages() const { return *messages_; }

  // `steps`: of one rank of each distinct stage, alone with its device.
  template <class T, class A>
  StepBesideOthers<T, A> Step(std::span<const hardware::StepTime<A>> steps,
                              const RankSurroundings<T>& around) const {
    if (division_) return Divided<T, A>(steps, around);
    return {steps.front(),
            AddedBy<T, A>(*workload_, *messages_, steps.front(), around),
            {}};
  }

 private:
  struct Division {
    const ModelStages* stages;
    RankPlacement placement;
  };

  template <class T, class A>
  StepBesideOthers<T, A> Divided(std::span<const hardware::StepTime<A>> steps,
                                 const RankSurroundings<T>& around) const {
    const RankPlacement& placement = division_->placement;
    const SplitTime<T> split = SplitBy<T, A>(
        *division_->stages, steps, placement, around.network, around.slower);
    StepBesideOthers<T, A> step{
        StepOfStages<A>(steps, split.busiest), {}, split.waits};
    const int64_t ranks =
        model::RanksThatSum(division_->stages->whole().parallel);
    if (ranks > 1) {
      RankSurroundings<T> of_copies = around;
      of_copies.network.hosts = placement.OfData().hosts;
      of_copies.ranks = ranks;
      of_copies.host = std::nullopt;  // such models offload nothing
      step.added = AddedBy<T, A>(*workload_,
                                 *messages_,
                                 steps.front(),
                                 of_copies,
                                 placement.OfExpertData());
    }
    const model::Seconds<T> exposed =
        split.sums +
        TiedTableTime(division_->stages->whole(), placement, around.network);
    step.added.exposed += exposed;
    step.added.all += exposed + split.waits;
    return step;
  }

  const model::Workload* workload_;
  const RankMessages* messages_;
  std::optional<Division> division_;
};

}  // namespace trainfare::calibrate
