#pragma once

// What recommend compares: every instance of the catalog with a job on it, why
// it is out where it is, and the order of those that are in.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/catalog/instance.h"
#include "model/units.h"
#include "scenarios/commands/recommend_options.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/contest.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// Why a candidate cannot be the choice, whatever the others offer.
enum class Obstacle {
  kNone,
  kMissesDeadline,
  kOverBudget,
  kDoesNotFit,  // a memory of device or host
  kNoPrice,
  kNetworkUnknown,  // of several hosts, whose times are of an assumed one
  kPowerUnknown,    // where energy is what counts
  kCannotRun,       // precision, shapes, links
};

struct Objection {
  Obstacle kind = Obstacle::kNone;
  std::string words;
  // By how much a limit is missed, as a share of it.
  double miss = 0;
};

struct Candidate {
  const hardware::Instance* instance = nullptr;  // nullptr: a device by itself
  bool here = false;  // the processor of this machine, not for rent
  std::string device;
  int64_t devices = 1;
  int64_t hosts = 1;  // as many of the instance
  // What was chosen for it, where there was a choice.
  model::Precision precision = model::Precision::kFp32;
  int64_t batch = 1;  // a device
  int64_t accumulation = 1;
  std::optional<JobEstimate> job;   // absent: cannot be estimated
  Cluster cluster;                  // that it is of
  bool over_named_network = false;  // by --network, not the catalog's
  std::optional<Tariff> tariff;
  std::optional<RunCost> cost;
  Objection objection;
  std::string worse;                   // than the choice, by how much
  std::optional<ScoreRange> weighted;  // by an objective that has weights
  bool chosen = false;
  // Chosen over others in a tie because it is measured, and they are not.
  bool by_measurement = false;
  // Lies within the choice's interval by an error of its own; on the choice's
  // own device by an interval that is not all above.
  bool tied = false;
  // No other candidate is both cheaper and faster.
  bool on_front = false;
  // Absent where it could not be the choice, whatever its figures
  // (scenarios/commands/choice_odds.h).
  std::optional<double> best_probability;
  std::optional<double> limits_probability;  // of meeting deadline and budget

  bool viable() const { return objection.kind == Obstacle::kNone; }
  bool timed() const { return job && job->fits(); }
  const std::string& Reason() const {
    return viable() ? worse : objection.words;
  }
  std::string Name() const {
    if (here) return "this machine";
    if (instance == nullptr) return device;
    return hosts > 1 ? std::to_string(hosts) + " x " + instance->FullName()
                     : instance->FullName();
  }
  // The score of a viable one that was ranked by that objective.
  ScoreRange Score(Objective objective) const;
};

// One device, and all, of every instance, all of the several hosts that were
// asked for, every device of `options.also`, and this machine's processor where
// it was calibrated; of a global batch also numbers of devices and hosts in
// between. Each with that of `jobs`, which differ by batch and precision, that
// takes it least time (or energy, where that is the objective), one that is
// safe in memory before all others. Throws
// InputError for clouds, devices and regions that nobody knows; `left_out_fits`
// gets a line for each file that is no fit.
std::vector<Candidate> EstimateCandidates(
    const std::vector<Scenario>& jobs,
    const RecommendOptions& options,
    std::vector<std::string>& left_out_fits);

// Best first, then what misses a limit by least, what nobody says the network
// of, the fastest of it first, then what does not fit, the nearest to it first,
// then what else is out in the order of its names. One that is measured goes
// before the best, where each lies within the interval of the other. Names the
// choice, what ties with it, why the others are not it, and who is on the front
// of cost and time.
void Rank(std::vector<Candidate>& candidates, Objective objective);

// How many are out for that.
int64_t CountOf(Obstacle kind, const std::vector<Candidate>& candidates);

// Those of viable candidates that no other one beats in cost and time both, by
// rising time.
std::vector<const Candidate*> ParetoFront(
    const std::vector<Candidate>& candidates);

// How many other candidates lie within the choice's interval.
size_t CountTies(const std::vector<Candidate>& candidates);

// "42 do not fit memory, 3 have no price"; empty when nothing is out.
std::string CountObstacles(const std::vector<Candidate>& candidates);

}  // namespace trainfare::scenarios
