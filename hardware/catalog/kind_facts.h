#pragma once

// What is taken of every device of a kind until its own file says otherwise,
// from hardware/kinds/*.yaml: figures with their source, none of a formula.

#include <map>
#include <optional>
#include <string>

#include "hardware/catalog/device.h"
#include "model/units.h"

namespace trainfare::hardware {

struct KindFacts {
  // Device memory that the driver, the framework and its kernels take, and the
  // workspace of the matrix library.
  model::Bytes<> context;
  model::Bytes<> workspace;
  double other_work_power_share = 0;
  double rest_power_share = 0;
  // What training over several ranks adds to a step on the host, which feeds
  // them and runs the front end, and how far that may be off, as the standard
  // deviation of its logarithm; 0: nothing is known to be added.
  model::Seconds<> rank_host;
  double rank_host_sigma = 0;
  // What all runs of one source share, over its hosts, software and cooling, as
  // the standard deviation of log(time); 0: no two measured one such device.
  double source_sigma = 0;
  // By compute capability ("8.0"), exactly.
  std::map<std::string, ArithmeticEnergy, std::less<>> generations;
  std::optional<CompilerFacts> compiler;
};

// What the file of a kind says; nothing where the kind has none. Read once.
const KindFacts& FactsOfKind(DeviceKind kind);

// What is taken of links between devices that nobody measured.
struct LinkFacts {
  double ring_share = 0;        // of a link's bandwidth that a ring gets
  double ring_share_sigma = 0;  // of the logarithm of that share
  // Between devices on the host's bus, from one root port to the next.
  model::BytesPerSecond<> through_processor;
  // The deviation of the logarithm of a network's bandwidth between hosts where
  // nobody named it.
  double unnamed_network_sigma = 0;
  model::Seconds<> peer_step;     // of one step of a ring between peers
  model::Seconds<> host_step;     // the same over the host's bus
  model::Seconds<> network_step;  // between hosts
};

const LinkFacts& FactsOfLinks();  // read once

// What is taken of a host's memory where state is offloaded to it.
struct HostFacts {
  double copy_share = 0;  // of a device's link to it that copies get
  double copy_share_sigma = 0;
  // What an update streams through it, over all ranks of a host, and how far
  // that may be off, as the standard deviation of its logarithm.
  model::BytesPerSecond<> update;
  double update_sigma = 0;
};

const HostFacts& FactsOfHosts();  // read once

// What is taken of the times besides the steps that a scenario leaves open.
struct RunFacts {
  // A process to its first step: `process_start`, and every parameter in 16
  // bits at that rate; 80 % of processes within a factor of it, both ways.
  model::Seconds<> process_start;
  model::BytesPerSecond<> parameters_read;
  double start_factor = 1;
  // From asking for an instance to its first process, 80 %.
  model::Seconds<> shortest_renting;
  model::Seconds<> longest_renting;
  // How slowly one host may write a checkpoint.
  model::BytesPerSecond<> slowest_write;
};

const RunFacts& FactsOfRuns();  // read once

}  // namespace trainfare::hardware
