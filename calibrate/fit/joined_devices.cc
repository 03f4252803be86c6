#include "calibrate/fit/joined_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "hardware/catalog/instance.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/sharding.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using model::InputError;

// Instances that have several of a device, as a hint; empty: none does.
std::string InstancesWithSeveral(const Device& device) {
  std::vector<std::string> names;
  for (const hardware::Instance* instance :
       hardware::InstanceCatalog::Shipped().OfDevice(device.name)) {
    if (instance->count > 1 && instance->between_devices) {
      names.push_back(instance->FullName());
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// From one device to the next on a host, by the datasheet.
hardware::Interconnect LinkBetween(const Device& device) {
  hardware::Interconnect link;
  if (device.peer_bandwidth) {
    link.name = "peer link of its datasheet";
    link.bandwidth = *device.peer_bandwidth;
    link.latency = hardware::FactsOfLinks().peer_step;
    link.sums_in_switch = device.sums_in_switch;
  } else if (device.through_host_bandwidth) {
    link.name = "through the host's memory, by its datasheet";
    link.bandwidth = *device.through_host_bandwidth;
    link.latency = hardware::FactsOfLinks().host_step;
  } else if (device.host_bandwidth) {
    link.name = "host link of its datasheet, through the processor";
    link.bandwidth = std::min(*device.host_bandwidth,
                              hardware::FactsOfLinks().through_processor);
    link.latency = hardware::FactsOfLinks().host_step;
  } else {
    const std::string instances = InstancesWithSeveral(device);
    throw InputError(fmt::format(
        "--devices: no link between several {} is known; {}",
        device.name,
        instances.empty() ? "no instance of the catalog has them either, so "
                            "one is all that can be asked about"
                          : "name an instance that has them: " + instances));
  }
  return link;
}

}  // namespace

JoinedDevices JoinedInHost(const Device& device, int64_t devices) {
  JoinedDevices joined;
  joined.devices = devices;
  if (devices <= 1) return joined;
  if (!device.part_of) {
    joined.link = LinkBetween(device);
    return joined;
  }
  const Device& chip = DeviceCatalog::Shipped().Find(*device.part_of);
  const int64_t parts = chip.cores / device.cores;
  joined.chip = chip.name;
  joined.devices_per_chip = std::min(devices, parts);
  if (devices <= parts) return joined;
  if (devices % parts != 0) {
    throw InputError(
        fmt::format("--devices: {0} is one of {1} parts of {2}; expected up to "
                    "{1}, or whole chips, got {3}; hint: {4} or {5}",
                    device.name,
                    parts,
                    chip.name,
                    devices,
                    devices / parts * parts,
                    (devices / parts + 1) * parts));
  }
  joined.link = LinkBetween(chip);
  return joined;
}

int64_t DevicesPerHost(const Observation& observation) {
  const int64_t hosts = observation.hosts;
  const int64_t devices = observation.device_count;
  if (devices % hosts != 0) {
    throw InputError(fmt::format(
        "nodes: expected a divisor of the {} devices, got {}", devices, hosts));
  }
  return devices / hosts;
}

JoinedDevices JoinedBy(const Device& device, const Observation& observation) {
  const int64_t local = DevicesPerHost(observation);
  const int64_t devices = observation.device_count;
  const int64_t hosts = observation.hosts;
  const int64_t racks = RacksOf(device, devices, hosts, observation.network);
  JoinedDevices joined = JoinedInHost(device, devices / racks);
  joined.hosts = hosts;
  if (racks == 1) return joined;
  joined.devices = devices;
  joined.racks = racks;
  joined.network = NetworkOfRacks(
      NetworkOf(device, local, nullptr, observation.network), hosts, racks);
  return joined;
}

std::optional<JoinedDevices> FittableOver(const Device& device,
                                          const Observation& observation) {
  if (observation.of_timed_ranks || hardware::KindOf(device).is_host ||
      observation.quantity != Quantity::kStep) {
    return std::nullopt;
  }
  try {
    JoinedDevices joined = JoinedBy(device, observation);
    RequireJoinable(
        model::OverDevices(observation.workload.parallel, joined.devices),
        joined,
        device);
    return joined;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

model::Workload OnDevices(const model::Workload& asked, int64_t devices) {
  model::Workload workload = asked;
  // Nothing is sent, so nothing is compressed.
  if (devices == 1) workload.compression = {};
  workload.parallel = model::OverDevices(asked.parallel, devices);
  return workload;
}

bool SendsBetween(const JoinedDevices& joined,
                  const model::Workload& workload) {
  const model::Parallel& parallel = workload.parallel;
  const bool offloads = model::Offloads(parallel);
  if (joined.chips() == 1 && !offloads) return false;
  if (model::DividesModel(parallel)) return true;
  const bool trains = workload.work == model::Work::kTraining;
  if (model::ShardsOf(parallel) == 1 && !offloads) return trains;
  // Passes alone send nothing, unless their parameters have to be gathered.
  return trains || model::ShardsParameters(parallel) ||
         parallel.offload_activations;
}

namespace {

// Throws InputError where a device has no way to its host's memory for what the
// workload offloads.
void RequireHostPath(const model::Parallel& parallel, const Device& device) {
  if (!model::Offloads(parallel) ||
      (device.host_bandwidth && !device.weight_bandwidth)) {
    return;
  }
  throw InputError(fmt::format(
      "parallel.{}: expected none on {}, {}",
      parallel.offload_activations ? "offload_activations" : "offload",
      device.name,
      device.weight_bandwidth
          ? "whose weights stream in from its host anyway"
          : "whose link to its host's memory is not known"));
}

// Throws InputError where groups of ranks that divide a model do not fill hosts,
// or are parts of one chip.
void RequirePlacement(const model::Parallel& parallel,
                      const JoinedDevices& joined) {
  if (!model::DividesModel(parallel)) return;
  if (joined.devices_per_chip > 1) {
    throw InputError(fmt::format(
        "parallel.{}: expected 1 between parts of {}; what they send each "
        "other is not known apart",
        model::FieldOfModelRanks(parallel),
        joined.chip));
  }
  model::RequireNone(PlacementOf(parallel, joined).Fault());
}

// Throws InputError where shards are neither whole hosts of a copy nor a part of
// a host that others of its size fill.
void RequireShards(const model::Parallel& parallel,
                   const JoinedDevices& joined) {
  const int64_t shards = model::ShardsOf(parallel);
  const int64_t local = PlacementOf(parallel, joined).OfData().in_host;
  if (shards == 1 || shards % local == 0 || local % shards == 0) return;
  std::vector<std::string> alike;
  for (int64_t copies = 1; copies <= joined.devices; ++copies) {
    if (joined.devices % copies != 0) continue;
    const int64_t of_copy = joined.devices / copies;
    if (of_copy > 1 && (of_copy % local == 0 || local % of_copy == 0)) {
      alike.push_back(fmt::format("{}", copies));
    }
  }
  throw InputError(fmt::format(
      "parallel.replicate: expected copies that lie over whole hosts of {} "
      "devices, or several in one, got {} of {} devices each; hint: {}",
      local,
      parallel.replicate,
      shards,
      fmt::join(alike, ", ")));
}

}  // namespace

std::optional<model::HostPath<double>> HostPathOf(
    const model::Parallel& parallel,
    const JoinedDevices& joined,
    const Device& device) {
  if (!model::Offloads(parallel)) return std::nullopt;
  RequireHostPath(parallel, device);
  const hardware::HostFacts& facts = hardware::FactsOfHosts();
  return model::HostPath<double>{*device.host_bandwidth * facts.copy_share,
                                 facts.update,
                                 joined.devices_of_host()};
}

RankPlacement PlacementOf(const model::Parallel& parallel,
                          const JoinedDevices& joined) {
  return {parallel, joined.devices_of_rack()};
}

void RequireJoinable(const model::Parallel& parallel,
                     const JoinedDevices& joined,
                     const Device& device) {
  RequireHostPath(parallel, device);
  RequirePlacement(parallel, joined);
  RequireShards(parallel, joined);
}

RankFit DatasheetRanks(const JoinedDevices& joined,
                       const JoinedNumbers& numbers) {
  RankFit ranks;
  ranks.network.ranks = joined.chips();
  const model::RankNetwork<double> network =
      DatasheetNetwork(joined, numbers.ring_share, numbers.network_share);
  ranks.network.hosts = network.hosts;
  ranks.network.across = network.across;
  ranks.network.alone.ring = network.alone;
  ranks.network.beside = ranks.network.alone;
  if (joined.devices == 1) return ranks;  // alone, whatever it offloads
  ranks.share = numbers.rank_share;
  ranks.share_error = numbers.rank_share_error;
  ranks.host = ranks.host_prior = numbers.rank_host;
  ranks.host_error = numbers.rank_host_error;
  ranks.unhidden = numbers.unhidden;
  return ranks;
}

}  // namespace trainfare::calibrate
