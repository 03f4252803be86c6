#pragma once

// A step over several ranks by the formulas alone: a rank's computation by the
// device's model, its messages by what a fit knows of the ring.

#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/models/step_time.h"
#include "model/data_parallel.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The backward pass of one micro-batch, from the head to the embeddings, each
// bucket of gradients behind the layer that completes it. `bucket_sizes`: as
// the trainer recorded them; empty: the default of PyTorch and of the trainer.
std::vector<model::BackwardPiece<double>> BackwardPieces(
    const model::Workload& workload,
    const hardware::StepTime<double>& time,
    const std::vector<model::Bytes<>>& bucket_sizes = {});

// A step of one of the ranks.
struct RankStepTime {
  hardware::StepTime<double> computing;  // beside the others, nothing sent
  // What messages beside it add to computation, and those that it does not
  // hide.
  model::Seconds<> slowed;
  model::Seconds<> exposed;
  model::Seconds<> host;  // beside all that
  // Standard deviations of log(total()) and log(backward()) by ring, speed,
  // share and host alone.
  double log_sigma = 0;
  double backward_log_sigma = 0;

  model::Seconds<> total() const {
    return computing.total() + slowed + exposed + host;
  }
  model::Seconds<> backward() const {
    return computing.backward.total() + slowed + exposed;
  }
};

// `alone`: of one rank that has the device for itself.
RankStepTime StepOverRanks(
    const model::Workload& workload,
    const hardware::StepTime<double>& alone,
    const RankFit& ranks,
    const std::vector<model::Bytes<>>& bucket_sizes = {});

// The group of so many ranks that `fit` knows, else of the nearest number as a
// factor; nullptr: of none, or one rank alone is asked for.
const RankFit* NearestRanks(const Fit& fit, int64_t ranks);
// The same for `ranks`: the ring's formula has their number, and ranks that
// share a processor get as much less of it. What another number of ranks gets
// of its links is as open as of links that nobody measured.
std::optional<RankFit> RanksOf(const Fit& fit, int64_t ranks);

}  // namespace trainfare::calibrate
