#pragma once

// Passes over a model whose parts are on the stages of a pipeline.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/error.h"
#include "model/units.h"

namespace trainfare::model {

// One forward, one backward (1F1B). The model is cut into stages * chunks
// parts, of which part c * stages + s is chunk c of stage s. A stage runs so
// many forward passes to warm up, then one forward and one backward by turns,
// then the backward passes that are left.
//
// With several chunks (interleaved) micro-batches go in groups of as many as
// there are stages: all of a group through a chunk, then through the next one,
// backward from the last chunk to the first. Megatron wants groups to be full;
// the places of what the last one lacks are left out here, so that the order of
// the others is that of full groups.
// Source: Narayanan et al. 2021 (arXiv 2104.04473), 2.2; NVIDIA/Megatron-LM
// megatron/core/pipeline_parallel/schedules.py.
struct PipelineSchedule {
  int64_t stages = 1;
  int64_t chunks = 1;  // of each stage
  int64_t micro_batches = 1;
  bool forward_only = false;  // no pass backward comes between

  // Places in the order of a stage's passes of one kind that a group takes.
  int64_t group_places() const { return stages * chunks; }
  int64_t places() const {
    return (micro_batches + stages - 1) / stages * group_places();
  }
  // Places before the first that may be empty. Of one chunk all are full, and
  // each micro-batch goes by itself.
  int64_t full_places() const {
    return chunks == 1 ? micro_batches
                       : micro_batches / stages * group_places();
  }
  // After so many places the next ones are of the same chunks.
  int64_t period() const { return chunks == 1 ? 1 : group_places(); }

  // Places of the forward passes that warm `stage` up.
  int64_t WarmUp(int64_t stage) const {
    const int64_t stages_after = stages - stage - 1;
    return chunks == 1 ? stages_after
                       : 2 * stages_after + (chunks - 1) * stages;
  }
};

// The most forward passes of `stage` whose backward passes have not run, each
// of one micro-batch through one chunk: of every one it holds activations. They
// are those of its first WarmUp + 1 places.
// Worked by hand: docs/models/pipeline.md. Check:
// tests/model/pipeline_test.cc.
inline int64_t PassesInFlight(const PipelineSchedule& schedule, int64_t stage) {
  ENSURE(0 <= stage && stage < schedule.stages, "a stage of the pipeline");
  const int64_t places =
      std::min(schedule.WarmUp(stage) + 1, schedule.places());
  const int64_t groups = places / schedule.group_places();
  const int64_t rest = places % schedule.group_places();
  const int64_t before = groups * schedule.stages;
  const int64_t group =
      std::clamp<int64_t>(schedule.micro_batches - before, 0, schedule.stages);
  return std::min(before, schedule.micro_batches) * schedule.chunks +
         rest / schedule.stages * group +
         std::min(rest % schedule.stages, group);
}

// Passes of one part of the model, of one micro-batch.
template <class T>
struct PipelinePart {
  Seconds<T> forward;
  Seconds<T> backward;
  Seconds<T> total() const { return forward + backward; }
};
template <class T>
PipelinePart<T> operator+(const PipelinePart<T>& a, const PipelinePart<T>& b) {
  return {a.forward + b.forward, a.backward + b.backward};
}
template <class T>
PipelinePart<T> operator-(const PipelinePart<T>& a, const PipelinePart<T>& b) {
  return {a.forward - b.forward, a.backward - b.backward};
}
template <class T>
PipelinePart<T> operator*(const PipelinePart<T>& a, const T& times) {
  return {a.forward * times, a.backward * times};
}

template <class T>
struct PipelineTime {
  Seconds<T> total;    // from the first forward pass to the last backward pass
  Seconds<T> busiest;  // what the stage with most work computes
  // For other stages, before, between and after that.
  Seconds<T> waiting() const { return total - busiest; }
};

// When passes end, in rounds: in round r each stage s runs forward the place
// r - s of its order and then backward the place r - s - WarmUp(s), so that
// what a pass needs was run in the same round or in the one before.
template <class T>
class PipelineRecursion {
 public:
  PipelineRecursion(const std::vector<PipelinePart<T>>& parts,
                    const PipelineSchedule& schedule,
                    Seconds<T> transfer)
      : parts_(parts),
        schedule_(schedule),
        transfer_(schedule.stages > 1 ? transfer : Seconds<T>()),
        stages_(static_cast<size_t>(schedule.stages)),
        next_look_(schedule.WarmUp(0) + 1),
        apart_(schedule.period()) {}

  // When the last backward pass of the first stage ends, and with it all; or
  // the last forward pass of the last stage.
  Seconds<T> End() {
    if (schedule_.forward_only) {
      for (; round_ < schedule_.places() + schedule_.stages - 1; ++round_) {
        Forward();
      }
      return stages_.back().forward;
    }
    while (round_ < schedule_.places() + schedule_.WarmUp(0)) {
      Forward();
      Backward();
      ++round_;
      if (round_ == next_look_) LookForPeriod();
    }
    return stages_.front().backward;
  }

 private:
  // A place in the order of passes.
  struct Place {
    int64_t before_group = 0;  // micro-batches
    int64_t in_group = 0;
    int64_t chunk = 0;  // counted in the direction of the passes

    int64_t micro_batch() const { return before_group + in_group; }
    void Advance(const PipelineSchedule& schedule) {
      if (++in_group < schedule.stages) return;
      in_group = 0;
      if (++chunk < schedule.chunks) return;
      chunk = 0;
      before_group += schedule.stages;
    }
  };

  struct Stage {
    Seconds<T> forward;  // ends of the latest passes
    Seconds<T> backward;
    Place next_forward;
    Place next_backward;

    Seconds<T> free() const { return std::max(forward, backward); }
  };

  const PipelinePart<T>& PartOf(size_t stage, int64_t chunk) const {
    return parts_[static_cast<size_t>(chunk) * stages_.size() + stage];
  }

  void Forward() {
    const Seconds<T> around = stages_.back().forward;
    for (size_t s = stages_.size(); s-- > 0;) {
      if (round_ < static_cast<int64_t>(s)) continue;
      Stage& stage = stages_[s];
      const Place place = stage.next_forward;
      stage.next_forward.Advance(schedule_);
      if (place.micro_batch() >= schedule_.micro_batches) continue;
      Seconds<T> begin = stage.free();
      if (s > 0 || place.chunk > 0) {
        const Seconds<T>& before = s > 0 ? stages_[s - 1].forward : around;
        begin = std::max(begin, before + transfer_);
      }
      stage.forward = begin + PartOf(s, place.chunk).forward;
    }
  }

  void Backward() {
    // Of the part after: of one chunk in this round, of several in the last.
    Seconds<T> after = stages_.front().backward;
    for (size_t s = stages_.size(); s-- > 0;) {
      const auto number = static_cast<int64_t>(s);
      Stage& stage = stages_[s];
      const Seconds<T> last_round = stage.backward;
      if (round_ >= number + schedule_.WarmUp(number)) {
        const Place place = stage.next_backward;
        stage.next_backward.Advance(schedule_);
        if (place.micro_batch() < schedule_.micro_batches) {
          Seconds<T> begin = stage.free();
          if (s + 1 < stages_.size() || place.chunk > 0) {
            begin = std::max(begin, after + transfer_);
          }
          const int64_t chunk = schedule_.chunks - 1 - place.chunk;
          stage.backward = begin + PartOf(s, chunk).backward;
        }
      }
      after = schedule_.chunks == 1 ? stage.backward : last_round;
    }
  }

  // While all places are full, times after a period are a function of those
  // before it, and later by as much where those are. As soon as all are later
  // than some periods ago by the same, each further stretch of so many adds the
  // same again, whatever went before: it is added for all stretches that are
  // left. How many periods make a stretch, and when it begins, is not known: it
  // is looked for from rounds farther and farther apart (Brent 1980). A
  // scalar's derivatives follow the longest chains of passes and may take a
  // micro-batch's way through the pipeline longer to settle than its value.
  void LookForPeriod() {
    next_look_ += schedule_.period();
    const int64_t stretch = round_ - seen_round_;
    if (!seen_.empty() && AllLaterByTheSame()) {
      repeated_ += stretch;
      if (repeated_ >= stretch + 2 * schedule_.group_places()) {
        Skip(stretch);
        return;
      }
    } else {
      repeated_ = 0;
      if (!seen_.empty() && stretch < apart_) return;
      apart_ *= 2;
    }
    seen_ = stages_;
    seen_round_ = round_;
  }

  // Up to rounding. What it lets pass, a share of a stretch, is at most the
  // same share of the end, since no pass makes a delay longer.
  bool AllLaterByTheSame() const {
    constexpr double kRounding = 1e-11;
    const Seconds<T> later = stages_.front().backward - seen_.front().backward;
    const Seconds<T> rounding = kRounding * later;
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const auto time : {&Stage::forward, &Stage::backward}) {
        const Seconds<T> off = stages_[s].*time - seen_[s].*time - later;
        if (off > rounding || -off > rounding) return false;
      }
    }
    return true;
  }

  void Skip(int64_t stretch) {
    const int64_t stretches = (schedule_.full_places() - round_) / stretch;
    next_look_ = 0;  // never again
    if (stretches <= 0) return;
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const auto time : {&Stage::forward, &Stage::backward}) {
        stages_[s].*time += static_cast<double>(stretches) *
                            (stages_[s].*time - seen_[s].*time);
      }
    }
    schedule_.micro_batches -= stretches * stretch / schedule_.chunks;
  }

  const std::vector<PipelinePart<T>>& parts_;
  PipelineSchedule schedule_;  // less what is skipped
  Seconds<T> transfer_;
  std::vector<Stage> stages_;
  int64_t round_ = 0;

  int64_t next_look_;
  std::vector<Stage> seen_;  // as stages_ were after seen_round_
  int64_t seen_round_ = 0;
  int64_t apart_;
  int64_t repeated_ = 0;  // rounds of stretches that were alike
};

// Passes of all micro-batches of a step by `parts` in the model's order.
//
//   F_j,i = max(previous, F_j-1,i + c) + f_j
//   B_j,i = max(previous, B_j+1,i + c) + b_j
//
//   f_j, b_j  passes of part j, of one micro-batch               [s]
//   c         activations, or their gradients, to the next part  [s]
//   previous  end of the pass before it in the order of its stage
//
// and without the second where there is no such part. Equal parts and c = 0
// take (m v + p - 1) (f + b), of m micro-batches (p divides m where v > 1), p
// stages and v chunks. Sending occupies no stage, and transfers do not wait for
// each other. A stage by itself sends nothing.
// Source: as of PipelineSchedule. Worked by hand: docs/models/pipeline.md.
// Check: tests/model/pipeline_test.cc.
template <class T>
PipelineTime<T> PipelinePassTime(const std::vector<PipelinePart<T>>& parts,
                                 const PipelineSchedule& schedule,
                                 Seconds<T> transfer) {
  ENSURE(schedule.stages >= 1 && schedule.chunks >= 1 &&
             schedule.micro_batches >= 1 &&
             static_cast<int64_t>(parts.size()) == schedule.group_places(),
         "a part for each chunk of each stage, and a micro-batch");
  const auto stages = static_cast<size_t>(schedule.stages);
  Seconds<T> busiest;
  for (size_t s = 0; s < stages; ++s) {
    Seconds<T> work;
    for (size_t part = s; part < parts.size(); part += stages) {
      work += parts[part].forward + parts[part].backward;
    }
    busiest = std::max(busiest, work);
  }
  return {PipelineRecursion<T>(parts, schedule, transfer).End(),
          static_cast<double>(schedule.micro_batches) * busiest};
}

}  // namespace trainfare::model
