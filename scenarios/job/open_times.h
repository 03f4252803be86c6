#pragma once

// Times besides the steps that a scenario leaves open: start-up, compiling,
// checkpoints. Each has a usual value, which the answer counts, and a range,
// which its interval has.

#include <optional>
#include <string>

#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// `low` to `high` in 80 % of runs. All three alike where it is known.
struct OpenTime {
  model::Seconds<> low;
  model::Seconds<> usual;
  model::Seconds<> high;
};

// From renting, where the cluster is rented, to the first step:
//
//   t = renting + (process + 2 parameters / rate) + compiling
//
// with ranges of all terms, which are independent; only a stack that compiles
// does. Source: hardware/kinds/any.yaml. Check:
// tests/scenarios/job/open_times_test.cc, docs/guide/scenarios.md.
OpenTime StartUpTime(const Scenario& scenario,
                     const hardware::Device& device,
                     const Cluster& cluster);
// Whether a job compiles its graphs when it starts: not where that was done
// before, nor where a device compiles shapes one by one (CompilingTime).
bool CompilesAtStart(const Scenario& scenario, const hardware::Device& device);

// For readers: what of an answer is assumed ("", where nothing is), and by
// what.
std::string StartUpWords(const JobEstimate& job);
std::string StartUpNote(bool rented, bool compiled);

// One after every epoch: none is counted where none is stated, and at most
// parameters and optimizer state of what trains are written in fp32, by each
// host its share.
OpenTime CheckpointTime(const Scenario& scenario, const Cluster& cluster);
// For readers: what of that is assumed, where the interval of the run shows it.
std::optional<std::string> CheckpointNote(const JobEstimate& job,
                                          const Scenario& scenario,
                                          const Cluster& cluster);

// What compiling one shape takes in the answer itself: as the scenario says;
// else of new lengths the middle of what is known of the kind, and of fixed
// ones nothing, which the first run alone pays for.
model::Seconds<> CompileTime(const Scenario& scenario,
                             const hardware::Device& device,
                             const JobEstimate& job);
// The whole run's, whose shapes are counted. The graphs of fixed shapes may
// have been compiled by a run before, so it may be nothing; at most each takes
// the longest of its kind. New lengths are compiled at least once each, and at
// most whenever a step has another than the one before.
OpenTime CompilingTime(const Scenario& scenario,
                       const hardware::Device& device,
                       const JobEstimate& job);

}  // namespace trainfare::scenarios
