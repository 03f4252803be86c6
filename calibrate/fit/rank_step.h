#pragma once

// A step over several ranks by the formulas alone: a rank's computation by the
// device's model, its messages by what a fit knows of the ring.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/rank_pass.h"
#include "calibrate/fit/split_step.h"
#include "hardware/models/step_time.h"
#include "model/offload.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// A step of one of the ranks.
struct RankStepTime {
  hardware::StepTime<double> computing;  // beside the others, nothing sent
  // What messages beside it add to computation, and those that it does not
  // hide.
  model::Seconds<> slowed;
  model::Seconds<> exposed;
  model::Seconds<> waiting;  // of a stage for the others of its pipeline
  model::Seconds<> host;     // beside all that
  // The update, where the host makes it.
  model::Seconds<> host_update;
  // Standard deviations of log(total()) and log(backward()) by ring, speed,
  // share and host alone.
  double log_sigma = 0;
  double backward_log_sigma = 0;
  std::vector<ShardTraffic> traffic;  // empty: nothing is shared

  model::Seconds<> total() const {
    return computing.total() + slowed + exposed + waiting + host + host_update;
  }
  model::Seconds<> forward() const {
    return computing.forward.total() + AddedTo("forward");
  }
  model::Seconds<> backward() const {
    return computing.backward.total() +
           (traffic.empty() ? slowed + exposed : AddedTo("backward"));
  }
  model::Seconds<> optimizer() const {
    return computing.optimizer.total() + AddedTo("update") + host_update;
  }

 private:
  // By what ranks that share state send in this part.
  model::Seconds<> AddedTo(std::string_view part) const {
    model::Seconds<> added;
    for (const ShardTraffic& one : traffic) {
      if (one.part == part) added += one.slowed + one.exposed;
    }
    return added;
  }
};

// A step of one of several ranks, whatever joins them: what it computes and
// what it sends in between are counted once for every network that is asked
// about. `alone`: of one rank that has the device for itself, its update that
// of its share. Of ranks that share state (workload.parallel) every micro-batch
// gathers, and sums its gradients unless each rank keeps them whole. What is in
// the host's memory is copied before it is gathered, and behind its sum, on the
// same channel (model/offload.h). Not modelled: copies between gathered buffers
// and parameters.
class StepOfRank {
 public:
  // `workload` and `messages`, which are its own, must outlive the step.
  StepOfRank(const model::Workload& workload,
             const hardware::StepTime<double>& alone,
             const RankMessages& messages);
  // The same of ranks that have a part of the model each; `steps` are of a rank
  // of each distinct stage.
  StepOfRank(const ModelStages& stages,
             const std::vector<hardware::StepTime<double>>& steps,
             const RankPlacement& placement);

  // `host`: where anything is offloaded.
  RankStepTime Over(
      const RankFit& ranks,
      const std::optional<model::HostPath<double>>& host = std::nullopt) const;
  // The same to the last bit but for how sure it is, in less time.
  RankStepTime TimeOver(
      const RankFit& ranks,
      const std::optional<model::HostPath<double>>& host = std::nullopt) const;

 private:
  // With T = an autodiff scalar of what the group leaves open, how sure it is.
  template <class T>
  RankStepTime OverAs(const RankFit& ranks,
                      const std::optional<model::HostPath<double>>& host) const;

  // How sure `step` is, of which `rank` is what the ranks take.
  template <class T>
  void SetDoubt(const StepBesideOthers<T, double>& rank,
                const RankFit& ranks,
                const T& slower,
                RankStepTime& step) const;

  JoinedRanks joined_;
  std::vector<hardware::StepTime<double>> steps_;  // of each distinct stage
};

inline RankStepTime StepOverRanks(
    const model::Workload& workload,
    const hardware::StepTime<double>& alone,
    const RankFit& ranks,
    const std::vector<model::Bytes<>>& bucket_sizes = {},
    const std::optional<model::HostPath<double>>& host = std::nullopt) {
  const RankMessages messages(workload, bucket_sizes);
  return StepOfRank(workload, alone, messages).Over(ranks, host);
}

// A message by itself, nothing beside it; the standard deviation of the
// logarithm of its time is what the ring leaves open, and how single messages
// scatter about it.
struct MessageTime {
  model::Seconds<> time;
  double log_sigma = 0;
};
MessageTime AllReduceOver(const RankFit& ranks, model::Bytes<> size);

// The group of so many ranks that `fit` knows, else of the nearest number as a
// factor; nullptr: of none, or one rank alone is asked for.
const RankFit* NearestRanks(const Fit& fit, int64_t ranks);
// The same for `ranks`: the ring's formula has their number, and ranks that
// share a processor get as much less of it. What another number of ranks gets
// of its links is as open as of links that nobody measured.
std::optional<RankFit> RanksOf(const Fit& fit, int64_t ranks);

}  // namespace trainfare::calibrate
