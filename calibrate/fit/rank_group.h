#pragma once

// What a fit knows of ranks that train together.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/fitted_run.h"
#include "calibrate/fit/rank_network.h"
#include "model/units.h"

namespace trainfare::calibrate {

// One all-reduce as the fit of its ring sees it.
struct FittedAllReduce {
  model::Bytes<> size;
  bool beside = false;  // while the ranks computed
  model::Seconds<> measured;
  model::Seconds<> modelled;
};

// Where ranks are, by what the trainer says lies between them: a protocol and
// "within a host" or "between hosts". kUnknown: anything else, or nothing.
enum class RankReach { kUnknown, kWithinHost, kBetweenHosts };
RankReach ReachOf(std::string_view transport);

// As far as RankFit::share may be, in a fit and in its file: a rank that
// computes ten times as fast beside others is a mistake.
inline constexpr double kLeastShare = 1e-4;
inline constexpr double kMostShare = 10.0;

// What is known of ranks that train together (docs/models/data_parallel.md).
struct RankFit {
  std::string backend;    // gloo, nccl
  std::string transport;  // as the trainer says (ReachOf), may be empty
  std::string source;     // the files
  RankNetwork network;
  // Ranks on one processor share its cores and memory; each GPU is its own.
  int64_t ranks_per_device = 1;
  // How fast a rank computes beside the others, as a share of what the device
  // does alone with all that it has; the errors are of the logarithm.
  double share = 1;
  double share_error = 0;
  double share_prior = 1;
  bool share_determined = false;
  // What the host adds to a step over ranks, which one rank alone does not
  // wait for: feeding them, the front end. The error is of the logarithm, the
  // correlation that with the logarithm of the share. 0: nothing.
  model::Seconds<> host;
  double host_error = 0;
  model::Seconds<> host_prior;
  bool host_determined = false;
  double host_share_correlation = 0;
  // Standard deviation of log(model / measured) over the runs; 0: no runs.
  double scatter = 0;
  std::vector<FittedAllReduce> all_reduces;
  std::vector<FittedRun> runs;  // of these ranks
};

}  // namespace trainfare::calibrate
