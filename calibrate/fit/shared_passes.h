#pragma once

// Passes of ranks that share training state, or have it on their hosts: what
// units gather and sum, and what that adds to them. docs/models/sharding.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/fit/added_time.h"
#include "calibrate/fit/rank_group.h"
#include "hardware/models/step_time.h"
#include "model/activations.h"
#include "model/collective.h"
#include "model/data_parallel.h"
#include "model/error.h"
#include "model/muon.h"
#include "model/offload.h"
#include "model/rounding.h"
#include "model/sharded_pass.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Passes of ranks that share state, or have it on their hosts, unit by unit.
template <class T, class A>
class SharedPasses {
 public:
  SharedPasses(const model::Workload& workload,
               const model::ShardUnits& units,
               const RankSurroundings<T>& around,
               const model::GroupShape& of_experts)
      : w_(workload),
        network_(around.network),
        unhidden_(around.unhidden),
        slower_(around.slower),
        all_{{model::ShardsOf(workload.parallel),
              workload.parallel.replicate,
              around.ranks / around.network.hosts}},
        experts_{GroupsOfExperts(workload, of_experts)},
        host_(around.host),
        root_(units.root),
        brings_(model::ShardsParameters(workload.parallel) ||
                workload.parallel.offload_activations) {
    // What a block keeps hangs on its place, a full bucket on those before.
    const bool one_by_one = workload.parallel.offload_activations ||
                            !model::ShardsParameters(workload.parallel);
    int64_t first = 0;
    for (const model::ShardedBlocks& alike : units.blocks) {
      const int64_t count = one_by_one ? 1 : alike.count;
      for (int64_t i = 0; i < alike.count; i += count) {
        blocks_.push_back({&alike.unit, first + i, count});
      }
      first += alike.count;
    }
  }

  AddedTime<T> Over(const hardware::StepTime<A>& alone) {
    AddedTime<T> added;
    const bool once = w_.part.gathered_once;
    const auto passes = static_cast<double>(once ? 1 : w_.accumulation);
    if (brings_) {
      Add("forward",
          model::OverlapGathered(Forward(alone), network_.speed),
          {1, 1},
          passes,
          added);
    }
    if (w_.work == model::Work::kForward) return added;
    // Whole gradients wait for the last micro-batch. What blocks kept comes
    // back in each.
    const double sums = model::KeepsShareOfGradients(w_) ? passes : 1.0;
    if (brings_ && passes > sums) {
      Add("backward",
          model::OverlapGathered(Backward(alone, /*sums=*/false),
                                 network_.speed),
          {},
          passes - sums,
          added);
    }
    // Gathered where blocks are computed again and in their backward pass, and
    // summed.
    const Tasks backward = Backward(alone, /*sums=*/true);
    Add("backward",
        brings_ ? model::OverlapGathered(backward, network_.speed)
                : model::OverlapSummed(backward, network_.speed),
        w_.gradient_checkpointing ? Transfers{3, 2} : Transfers{2, 1},
        sums,
        added);
    const bool sends =
        all_.groups.shards > 1 && (!model::ShardsParameters(w_.parallel) ||
                                   model::MuonExchangedBytes(w_) > 0);
    if (sends || model::UpdatedFromHost(w_) > 0) {
      const Tasks update = {Updated()};
      Add("update",
          model::OverlapGathered(update, network_.speed),
          {},
          1.0,
          added);
    }
    return added;
  }

 private:
  using Tasks = std::vector<model::ShardTask<T>>;
  using Transfer = model::TransferTime<T>;

  // A transfer of so many bytes.
  struct Message {
    int64_t bytes = -1;
    model::Bytes<> sent;
    Transfer time;
  };
  // Ranks that share the same state, and the last that they sent.
  struct Sharers {
    model::ShardGroups groups;
    Message gather = {};
    Message reduce = {};
  };
  // How often each small unit is sent in a pass, by what it is of.
  struct Transfers {
    int64_t of_adapters = 0;
    int64_t of_experts = 0;
  };
  // So many blocks from number `first` on, each with as much to send.
  struct Blocks {
    const model::ShardUnit* unit = nullptr;
    int64_t first = 0;
    int64_t count = 0;
  };

  // Those that share the same experts, in as many copies as go into them.
  static model::ShardGroups GroupsOfExperts(const model::Workload& w,
                                            const model::GroupShape& shape) {
    const int64_t ranks = shape.in_host * shape.hosts;
    const int64_t copies = std::gcd(w.parallel.replicate, ranks);
    const int64_t shards = ranks / copies;
    const int64_t local =
        shards % shape.in_host == 0 || shape.in_host % shards == 0
            ? shape.in_host
            : std::gcd(shape.in_host, shards);
    return {shards, copies, local};
  }

  // Two transfers, one behind the other.
  static Transfer Both(const Transfer& one, const Transfer& other) {
    return {one.alone + other.alone, one.beside + other.beside};
  }

  // The transfer of so many bytes, which is sent `count` times, by what each
  // rank sends of a size and the time that it takes on a ring. Most are as the
  // `last` one.
  template <class Traffic, class Time>
  Transfer Send(const model::ShardGroups& groups,
                int64_t bytes,
                int64_t count,
                const Traffic& traffic,
                const Time& time,
                Message& last) {
    if (bytes != last.bytes) {
      const model::Bytes<> size = model::Byte(static_cast<double>(bytes));
      last = {bytes,
              traffic(groups, size),
              TimeOf([&](const model::RingLevel<T>& ring) {
                return time(size, ring);
              })};
    }
    sent_ += last.sent * static_cast<double>(count);
    return last.time;
  }

  // So many bytes, of each rank its share to all others.
  Transfer GatherBytes(int64_t bytes, int64_t count, Sharers& ranks) {
    if (bytes == 0 || ranks.groups.shards == 1) return {};
    return Send(
        ranks.groups,
        bytes,
        count,
        model::GatherTraffic,
        [&](model::Bytes<> size, const model::RingLevel<T>& ring) {
          return network_.gather *
                 model::GatherTime(ranks.groups, size, ring, network_.across);
        },
        ranks.gather);
  }

  Transfer Gather(const model::ShardUnit& unit, int64_t count) {
    const model::UnitParts parts = model::PartsOfUnit(unit);
    return Both(
        GatherBytes(model::GatheredBytes(w_, parts.rest), count, all_),
        GatherBytes(model::GatheredBytes(w_, parts.experts), count, experts_));
  }

  Transfer Reduce(int64_t bytes, int64_t count, Sharers& ranks) {
    if (bytes == 0 || ranks.groups.shards * ranks.groups.copies == 1) return {};
    return Send(
        ranks.groups,
        bytes,
        count,
        model::ReduceTraffic,
        [&](model::Bytes<> size, const model::RingLevel<T>& ring) {
          return model::ReduceTime(ranks.groups,
                                   size,
                                   ring,
                                   network_.across,
                                   network_.reduce_scatter);
        },
        ranks.reduce);
  }

  // `transfer` with a copy to or from the host, `count` times.
  Transfer WithCopy(Transfer transfer, int64_t bytes, int64_t count) {
    if (bytes == 0) return transfer;
    ENSURE(host_.has_value(), "what is offloaded has a way to the host");
    const model::Bytes<> size = model::Byte(static_cast<double>(bytes));
    copied_ += size * static_cast<double>(count);
    const model::Seconds<T> time(T((size / host_->link).base()));
    return {transfer.alone + time, transfer.beside + time};
  }

  // Parameters where they are used: from the host, and from other ranks.
  Transfer Bring(const model::ShardUnit& unit, int64_t count) {
    if (!model::ShardsParameters(w_.parallel)) return {};
    return WithCopy(
        Gather(unit, count), model::ParametersFromHost(w_, unit), count);
  }

  // What blocks keep for their backward pass, to or from the host.
  Transfer CopyKept(Transfer transfer, const Blocks& blocks) {
    if (!w_.parallel.offload_activations || w_.work == model::Work::kForward) {
      return transfer;
    }
    return WithCopy(
        transfer, model::KeptByBlock(w_, blocks.first), blocks.count);
  }

  // Shards of Muon's matrices, each to one rank and then back: a rank sends
  // another its shards of that one's matrices, an n-th of an n-th.
  Transfer Exchange() {
    const int64_t bytes =
        model::CeilDivide(model::MuonExchangedBytes(w_), all_.groups.shards);
    const Transfer there = GatherBytes(bytes, 1, all_);
    return Both(there, GatherBytes(bytes, 1, all_));
  }

  // What each rank, or its host, updated goes to the others, and to the device,
  // before the next step.
  model::ShardTask<T> Updated() {
    model::ShardUnit trained;
    trained.elements = model::TrainableParameters(w_);
    if (w_.architecture.expert_ranks > 1) {
      trained.of_experts = model::TrainableExpertParameters(w_);
    }
    model::ShardTask<T> update;
    update.gather =
        model::ShardsParameters(w_.parallel) ? Exchange() : Gather(trained, 1);
    update.gather = WithCopy(update.gather, model::UpdatedFromHost(w_), 1);
    return update;
  }

  template <class Of>
  Transfer TimeOf(const Of& of) const {
    const model::Seconds<T> alone = of(network_.alone);
    return {alone, std::max(of(network_.beside), alone)};
  }

  // Time of one of these blocks in a pass.
  model::Seconds<A> BlockTime(const hardware::PassUnits<A>& units,
                              const Blocks& blocks) const {
    return blocks.first < w_.architecture.layers ? units.layer
                                                 : units.decoder_layer;
  }

  // Factor that makes the units' times those of one pass over all blocks but
  // the first so many: blocks of several kinds are recorded as one.
  T ScaleTo(const hardware::PassUnits<A>& units,
            model::Seconds<A> all,
            int64_t left_out) const {
    model::Seconds<A> sum = units.embeddings + units.head;
    for (const Blocks& blocks : blocks_) {
      if (blocks.first < left_out) continue;
      sum += BlockTime(units, blocks) * static_cast<double>(blocks.count);
    }
    const A once = all / static_cast<double>(w_.accumulation) / sum;
    return sum.base() > 0 ? slower_ * once : slower_;
  }

  Tasks Forward(const hardware::StepTime<A>& alone) {
    const hardware::PassUnits<A>& units = alone.forward_units;
    const T scale = ScaleTo(units, alone.forward.total(), 0);
    Tasks tasks;
    tasks.reserve(blocks_.size() + 2);
    tasks.push_back({Bring(root_, 1), units.embeddings * scale, {}});
    for (const Blocks& blocks : blocks_) {
      tasks.push_back({Bring(*blocks.unit, blocks.count),
                       BlockTime(units, blocks) * scale,
                       CopyKept({}, blocks),
                       blocks.count});
    }
    tasks.push_back({{}, units.head * scale, {}});
    return tasks;
  }

  // Sums what units leave, in full buckets where ranks hold all parameters.
  Transfer Sum(const model::ShardUnit& unit, int64_t count, bool last) {
    const model::UnitParts parts = model::PartsOfUnit(unit);
    waiting_ += model::SummedBytes(w_, parts.rest);
    of_experts_waiting_ += model::SummedBytes(w_, parts.experts);
    if (!last && !model::ShardsParameters(w_.parallel) &&
        waiting_ + of_experts_waiting_ <
            model::kReduceBucket * model::SumWidth(w_)) {
      return {};
    }
    const int64_t rest = std::exchange(waiting_, 0);
    const int64_t experts = std::exchange(of_experts_waiting_, 0);
    return WithCopy(
        Both(Reduce(rest, count, all_), Reduce(experts, count, experts_)),
        model::GradientsToHost(w_, (rest + experts) / model::SumWidth(w_)),
        count);
  }

  // With or without the sums of gradients.
  Tasks Backward(const hardware::StepTime<A>& alone, bool sums) {
    const hardware::PassUnits<A>& units = alone.backward_units;
    const int64_t frozen = w_.trainable.frozen_layers;
    const T scale = ScaleTo(units, alone.backward.total(), frozen);
    const bool gathers = w_.parallel.reshard_after_forward;
    Tasks tasks;
    tasks.reserve(blocks_.size() + 2);
    tasks.push_back({{}, units.head * scale, {}});
    for (size_t i = blocks_.size(); i-- > 0;) {
      const Blocks& blocks = blocks_[i];
      if (blocks.first < frozen) break;
      const Transfer gather =
          gathers ? Bring(*blocks.unit, blocks.count) : Transfer();
      tasks.push_back(
          {CopyKept(gather, blocks),
           BlockTime(units, blocks) * scale,
           sums ? Sum(*blocks.unit, blocks.count, false) : Transfer(),
           blocks.count});
    }
    tasks.push_back({{},
                     units.embeddings * scale,
                     sums ? Sum(root_, 1, true) : Transfer()});
    return tasks;
  }

  void Add(std::string_view part,
           model::ShardedPassTime<T> pass,
           Transfers unhidden,
           double times,
           AddedTime<T>& added) {
    if (all_.groups.shards > 1) {
      const auto adapters =
          static_cast<double>(unhidden.of_adapters * model::AdapterUnits(w_));
      const auto experts =
          static_cast<double>(unhidden.of_experts * model::ExpertModules(w_));
      pass.waiting +=
          unhidden_.small_unit * adapters + unhidden_.expert_matrix * experts;
      added.small_units += adapters * times;
      added.expert_matrices += experts * times;
    }
    added.slowed += pass.slowed * times;
    added.exposed += pass.waiting * times;
    added.all += (pass.slowed + pass.waiting) * times;
    if (added.traffic.empty() || added.traffic.back().part != part) {
      added.traffic.push_back({part, {}, {}, {}, {}, {}});
    }
    ShardTraffic& traffic = added.traffic.back();
    traffic.sent += std::exchange(sent_, {}) * times;
    traffic.copied += std::exchange(copied_, {}) * times;
    traffic.sending += model::Seconds<>(ValueOf(pass.sending.base()) * times);
    traffic.exposed += model::Seconds<>(ValueOf(pass.waiting.base()) * times);
    traffic.slowed += model::Seconds<>(ValueOf(pass.slowed.base()) * times);
  }

  const model::Workload& w_;
  const model::RankNetwork<T>& network_;
  UnhiddenUnits<T> unhidden_;
  T slower_;
  Sharers all_;
  Sharers experts_;
  const std::optional<model::HostPath<double>>& host_;
  const model::ShardUnit& root_;
  bool brings_;  // units wait for parameters, or for what they kept
  std::vector<Blocks> blocks_;  // in the order of the forward pass
  // Bytes of gradients, for a full bucket.
  int64_t waiting_ = 0;
  int64_t of_experts_waiting_ = 0;
  // By what was asked for since the last part.
  model::Bytes<> sent_;
  model::Bytes<> copied_;
};

}  // namespace trainfare::calibrate
