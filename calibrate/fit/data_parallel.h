#pragma once

// Backward pass and step over several ranks, from a run of one rank and
// all-reduces timed by themselves (docs/models/data_parallel.md).

#include <cstdint>
#include <vector>

#include "calibrate/fit/ring_fit.h"
#include "calibrate/records/measurement.h"
#include "model/overlap.h"
#include "model/units.h"

namespace trainfare::calibrate {

// Medians over the run's steps.
struct BackwardPass {
  // When each bucket's last gradient is computed, and all of them are.
  std::vector<model::Seconds<>> bucket_ready;
  model::Seconds<> compute_end;
  // How long each bucket travelled; 0 in a run of one rank.
  std::vector<model::Seconds<>> communication;
  model::Seconds<> end;  // backward as a whole
  // What computation did not hide.
  model::Seconds<> exposed() const { return end - compute_end; }
};

// Throws InputError for a run without times of buckets.
BackwardPass MedianBackward(const MeasuredRun& run);

// The pieces of OverlapBackward: buckets, and what is computed after the last.
// `communication`: of each bucket.
std::vector<model::OverlapTask<double>> OverlapTasks(
    const BackwardPass& pass,
    const std::vector<model::Seconds<>>& communication);

// Backward by OverlapBackward from each step's own times of buckets; the median
// over the steps.
model::Seconds<> RecursionBackward(const MeasuredRun& run);

// Fits a ring to the all-reduces over `ranks` ranks, and factors of it to the
// other collectives. Throws InputError where the all-reduces are too few.
RankNetwork FitNetwork(const std::vector<MeasuredCollective>& collectives,
                       int64_t ranks);

struct RankStep {
  model::Seconds<> compute_end;
  model::Seconds<> backward;
  model::Seconds<> step;
  model::Seconds<> communication;  // of all buckets
  model::Seconds<> exposed;
};

// The step of `one`, a run of one rank, over the ranks of `network`.
RankStep PredictRanks(const MeasuredRun& one, const RankNetwork& network);
// As measured.
RankStep MeasuredRanks(const MeasuredRun& run);

}  // namespace trainfare::calibrate
