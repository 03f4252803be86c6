#include "scenarios/job/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "calibrate/fit/rank_step.h"
#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::scenarios {
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

// Ranks that `fit` knows, as many as the cluster's devices.
void Join(calibrate::RankFit ranks,
          const calibrate::Fit& fit,
          Cluster& cluster) {
  cluster.ranks = std::move(ranks);
  cluster.measured_ranks =
      calibrate::NearestRanks(fit, cluster.devices)->network.ranks;
}

}  // namespace

std::optional<model::HostPath<double>> HostPathOf(
    const model::Parallel& parallel,
    const Cluster& cluster,
    const Device& device) {
  if (!model::Offloads(parallel)) return std::nullopt;
  if (!device.host_bandwidth || device.weight_bandwidth) {
    throw InputError(fmt::format(
        "parallel.{}: expected none on {}, {}",
        parallel.offload_activations ? "offload_activations" : "offload",
        device.name,
        device.weight_bandwidth
            ? "whose weights stream in from its host anyway"
            : "whose link to its host's memory is not known"));
  }
  const hardware::HostFacts& facts = hardware::FactsOfHosts();
  return model::HostPath<double>{*device.host_bandwidth * facts.copy_share,
                                 facts.update,
                                 cluster.devices_of_host()};
}

calibrate::RankFit DatasheetRanks(const Cluster& cluster,
                                  const Device& device) {
  calibrate::RankFit ranks;
  const double share = hardware::FactsOfLinks().ring_share;
  ranks.network.ranks = cluster.chips();
  ranks.network.hosts = cluster.hosts;
  if (cluster.network) {
    const int64_t of_host = cluster.chips() / cluster.hosts;
    const auto local = static_cast<double>(of_host);
    const hardware::Interconnect& wire = cluster.network->wire;
    ranks.network.across = {wire.latency, wire.bandwidth * (share / local)};
  }
  // A rank alone on its host has only the network.
  ranks.network.alone.ring = ranks.network.across;
  if (cluster.link) {
    ranks.network.alone.ring = {cluster.link->latency,
                                cluster.link->bandwidth * share};
  }
  ranks.network.beside = ranks.network.alone;
  if (cluster.devices == 1) return ranks;  // alone, whatever it offloads
  const hardware::KindFacts& facts = hardware::FactsOfKind(device.kind);
  ranks.host = ranks.host_prior = facts.rank_host;
  ranks.host_error = facts.rank_host_sigma;
  return ranks;
}

namespace {

// Parts of an instance's chips: as of the chips by themselves, but over the
// instance's link and in its host.
Cluster PartsOf(const hardware::Instance& instance,
                int64_t parts,
                const Device& part) {
  const int64_t most = DevicesOf(instance, part);
  if (parts > most) {
    throw InputError(
        fmt::format("--devices: expected at most {}, the {} of {}, got {}",
                    most,
                    part.name,
                    instance.FullName(),
                    parts));
  }
  Cluster cluster = ClusterOf(part, parts);
  cluster.rented = true;
  cluster.idle_devices = most - parts;
  cluster.host_memory = instance.host_memory;
  if (cluster.link && instance.between_devices) {
    cluster.link = instance.between_devices->Resolve();
  }
  return cluster;
}

}  // namespace

Cluster ClusterOf(const hardware::Instance& instance, int64_t devices) {
  Cluster cluster;
  cluster.devices = devices;
  cluster.rented = true;
  cluster.idle_devices = std::max<int64_t>(0, instance.count - devices);
  cluster.host_memory = instance.host_memory;
  if (devices > instance.count) {
    throw InputError(
        fmt::format("--devices: expected at most {}, the devices "
                    "of {}, got {}",
                    instance.count,
                    instance.FullName(),
                    devices));
  }
  if (devices > 1) {
    if (!instance.between_devices) {
      throw InputError(fmt::format("{}: no link between its devices is known",
                                   instance.FullName()));
    }
    cluster.link = instance.between_devices->Resolve();
  }
  return cluster;
}

Cluster ClusterOf(const Device& device, int64_t devices) {
  Cluster cluster;
  cluster.devices = devices;
  if (devices <= 1) return cluster;
  if (!device.part_of) {
    cluster.link = LinkBetween(device);
    return cluster;
  }
  const Device& chip = DeviceCatalog::Shipped().Find(*device.part_of);
  const int64_t parts = chip.cores / device.cores;
  cluster.chip = chip.name;
  cluster.devices_per_chip = std::min(devices, parts);
  if (devices <= parts) return cluster;
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
  cluster.link = LinkBetween(chip);
  return cluster;
}

int64_t DevicesOf(const hardware::Instance& instance, const Device& device) {
  if (device.part_of != instance.device) return instance.count;
  const Device& chip = DeviceCatalog::Shipped().Find(instance.device);
  return instance.count * (chip.cores / device.cores);
}

Cluster ClusterOf(const hardware::Instance& instance,
                  int64_t devices,
                  const calibrate::Predictor& predictor) {
  const Device& device = predictor.device();
  if (device.part_of == instance.device) {
    return PartsOf(instance, devices, device);
  }
  Cluster cluster = ClusterOf(instance, devices);
  auto ranks = calibrate::RanksOf(predictor.fit(), devices);
  if (ranks && ranks->transport.ends_with("within a host") &&
      ranks->network.alone.ring.link <= cluster.link->bandwidth) {
    Join(std::move(*ranks), predictor.fit(), cluster);
  }
  return cluster;
}

Cluster ClusterOf(const calibrate::Predictor& predictor, int64_t devices) {
  auto ranks = calibrate::RanksOf(predictor.fit(), devices);
  if (!ranks) return ClusterOf(predictor.device(), devices);
  Cluster cluster;
  cluster.devices = devices;
  Join(std::move(*ranks), predictor.fit(), cluster);
  return cluster;
}

namespace {

// A network that nobody named: as hosts of the catalog have it that carry the
// device, with as many where there are any, else with the most; where none
// carries it, as all hosts of several devices. The mean of the logarithms.
HostNetwork UnnamedNetwork(const Device& device, int64_t local) {
  const std::string& carried = device.part_of ? *device.part_of : device.name;
  const auto& catalog = hardware::InstanceCatalog::Shipped();
  std::vector<const hardware::Instance*> hosts = catalog.OfDevice(carried);
  std::erase_if(hosts, [](const auto* host) { return !host->network; });
  const bool known = !hosts.empty();
  if (!known) {
    for (const hardware::Instance& host : catalog.instances()) {
      if (host.network && host.count > 1) hosts.push_back(&host);
    }
  }
  const auto keep = [&](int64_t count) {
    std::erase_if(hosts,
                  [&](const auto* host) { return host->count != count; });
  };
  const auto has = [&](int64_t count) {
    return std::any_of(hosts.begin(), hosts.end(), [&](const auto* host) {
      return host->count == count;
    });
  };
  if (known) {
    int64_t most = 0;
    for (const auto* host : hosts) most = std::max(most, host->count);
    keep(has(local) ? local : most);
  }
  double sum = 0;
  double squares = 0;
  for (const auto* host : hosts) {
    const double log = std::log(host->network->Resolve().bandwidth.base());
    sum += log;
    squares += log * log;
  }
  const auto count = static_cast<double>(hosts.size());
  const double mean = sum / count;
  const double spread = std::sqrt(std::max(squares / count - mean * mean, 0.0));
  const hardware::LinkFacts& facts = hardware::FactsOfLinks();
  HostNetwork network;
  network.wire.name = known ? fmt::format("as hosts of {} have it", carried)
                            : "as hosts of other devices have it";
  network.wire.reach = hardware::InterconnectReach::kNetwork;
  network.wire.latency = facts.network_step;
  network.wire.bandwidth = model::BytesPerSecond<>(std::exp(mean));
  network.sigma = std::hypot(facts.ring_share_sigma,
                             std::max(facts.unnamed_network_sigma, spread));
  network.named = false;
  return network;
}

}  // namespace

Cluster OverHosts(Cluster host,
                  int64_t hosts,
                  const Device& device,
                  const hardware::Instance* instance,
                  std::optional<model::BytesPerSecond<>> bandwidth) {
  if (hosts == 1) return host;
  if (host.devices > model::kMostDevices / hosts) {
    throw InputError(
        fmt::format("hosts: expected at most {} devices, got {} hosts of {}",
                    model::kMostDevices,
                    hosts,
                    host.devices));
  }
  if (!bandwidth && device.peer_domain >= host.devices * hosts) {
    // One rack of peer links: no network between them.
    Cluster rack = ClusterOf(device, host.devices * hosts);
    rack.rented = host.rented;
    rack.idle_devices = host.idle_devices * hosts;
    rack.host_memory = host.host_memory;
    return rack;
  }
  const hardware::LinkFacts& facts = hardware::FactsOfLinks();
  HostNetwork network{{}, facts.ring_share_sigma, true};
  if (bandwidth) {
    network.wire.name = "the network that was named";
    network.wire.reach = hardware::InterconnectReach::kNetwork;
    network.wire.bandwidth = *bandwidth;
    network.wire.latency = facts.network_step;
  } else if (instance != nullptr && instance->network) {
    network.wire = instance->network->Resolve();
  } else {
    network = UnnamedNetwork(device, host.devices);
  }
  host.devices *= hosts;
  host.idle_devices *= hosts;
  host.hosts = hosts;
  host.network = std::move(network);
  if (host.ranks) {
    // Measured in one host; between them is the network.
    Cluster unmeasured = host;
    unmeasured.ranks.reset();
    const calibrate::RankNetwork over =
        DatasheetRanks(unmeasured, device).network;
    host.ranks->network.ranks = over.ranks;
    host.ranks->network.hosts = over.hosts;
    host.ranks->network.across = over.across;
  }
  return host;
}

Cluster ClusterOf(const calibrate::Predictor& predictor,
                  const calibrate::Observation& observation) {
  const int64_t hosts = observation.hosts;
  if (observation.device_count % hosts != 0) {
    throw InputError(
        fmt::format("nodes: expected a divisor of the {} devices, got {}",
                    observation.device_count,
                    hosts));
  }
  return OverHosts(ClusterOf(predictor, observation.device_count / hosts),
                   hosts,
                   predictor.device(),
                   nullptr,
                   observation.network);
}

}  // namespace trainfare::scenarios
