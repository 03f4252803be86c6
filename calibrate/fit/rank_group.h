#pragma once

// What a fit knows of ranks that train together.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/fitted_run.h"
#include "calibrate/fit/rank_network.h"
#include "hardware/catalog/kind_facts.h"
#include "model/units.h"

namespace trainfare::calibrate {

// What ranks that share parameters wait for beside what they send: by each
// gather or sum of a unit too small to hide any (adapters), and by each matrix
// of an expert that is gathered when it is called.
template <class T>
struct UnhiddenUnits {
  model::Seconds<T> small_unit;
  model::Seconds<T> expert_matrix;
};

// The same with how sure one is of it, as standard deviations of logarithms.
// Until a fit knows better, what is believed of every host.
struct UnhiddenUnitsFit {
  UnhiddenUnits<double> times{hardware::FactsOfHosts().small_unit,
                              hardware::FactsOfHosts().expert_matrix};
  double small_unit_error = hardware::FactsOfHosts().small_unit_sigma;
  double expert_matrix_error = hardware::FactsOfHosts().expert_matrix_sigma;
};

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
  UnhiddenUnitsFit unhidden;
  // Standard deviation of log(model / measured) over the runs; 0: no runs.
  double scatter = 0;
  std::vector<FittedAllReduce> all_reduces;
  std::vector<FittedRun> runs;  // of these ranks
};

}  // namespace trainfare::calibrate
