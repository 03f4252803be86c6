#include "scenarios/job/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/fit/rank_step.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using model::InputError;

// Ranks that `fit` knows, as many as the cluster's devices.
void Join(calibrate::RankFit ranks,
          const calibrate::Fit& fit,
          Cluster& cluster) {
  cluster.ranks = std::move(ranks);
  cluster.measured_ranks =
      calibrate::NearestRanks(fit, cluster.devices)->network.ranks;
}

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
  static_cast<calibrate::JoinedDevices&>(cluster) =
      calibrate::JoinedInHost(device, devices);
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
  if (ranks &&
      calibrate::ReachOf(ranks->transport) ==
          calibrate::RankReach::kWithinHost &&
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
  const int64_t racks =
      calibrate::RacksOf(device, host.devices * hosts, hosts, bandwidth);
  std::optional<HostNetwork> network;  // one rack has none
  if (racks > 1) {
    network = calibrate::NetworkOfRacks(
        calibrate::NetworkOf(
            device, host.devices + host.idle_devices, instance, bandwidth),
        hosts,
        racks);
  }
  if (racks < hosts) {
    Cluster joined = ClusterOf(device, host.devices * hosts / racks);
    joined.devices = host.devices * hosts;
    joined.hosts = hosts;
    joined.racks = racks;
    joined.network = std::move(network);
    joined.rented = host.rented;
    joined.idle_devices = host.idle_devices * hosts;
    joined.host_memory = host.host_memory;
    return joined;
  }
  host.devices *= hosts;
  host.idle_devices *= hosts;
  host.hosts = host.racks = hosts;
  host.network = std::move(network);
  if (host.ranks) {
    // Measured in one host; between them is the network.
    Cluster unmeasured = host;
    unmeasured.ranks.reset();
    const calibrate::RankNetwork over =
        calibrate::DatasheetRanks(unmeasured,
                                  calibrate::NumbersOf(device.kind, {}))
            .network;
    host.ranks->network.ranks = over.ranks;
    host.ranks->network.hosts = over.hosts;
    host.ranks->network.across = over.across;
  }
  return host;
}

Cluster ClusterOf(const calibrate::Predictor& predictor,
                  const calibrate::Observation& observation) {
  return OverHosts(ClusterOf(predictor, calibrate::DevicesPerHost(observation)),
                   observation.hosts,
                   predictor.device(),
                   nullptr,
                   observation.network);
}

}  // namespace trainfare::scenarios
