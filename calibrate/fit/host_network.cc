#include "calibrate/fit/host_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hardware/catalog/kind_facts.h"
#include "model/error.h"
#include "model/precision.h"
#include "model/rounding.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using model::InputError;

// Hosts of devices of the same generation, peaks and links to their peers: of
// another memory or limit of power alone.
std::vector<const hardware::Instance*> HostsOfAlike(const Device& device) {
  std::vector<const hardware::Instance*> hosts;
  for (const Device& other : DeviceCatalog::Shipped().devices()) {
    if (other.name == device.name || !device.peer_bandwidth ||
        other.peer_bandwidth != device.peer_bandwidth ||
        other.architecture != device.architecture ||
        other.MatrixPeak(model::Precision::kFp16) !=
            device.MatrixPeak(model::Precision::kFp16)) {
      continue;
    }
    const auto of_other =
        hardware::InstanceCatalog::Shipped().UsualOfDevice(other.name);
    hosts.insert(hosts.end(), of_other.begin(), of_other.end());
  }
  return hosts;
}

using Hosts = std::vector<const hardware::Instance*>;

// Hosts of several devices, whatever they are, whose network is known.
Hosts AnyNetworkedHosts() {
  Hosts hosts;
  for (const hardware::Instance& host :
       hardware::InstanceCatalog::Shipped().instances()) {
    if (host.network && host.count > 1 && host.named_only.empty()) {
      hosts.push_back(&host);
    }
  }
  return hosts;
}

// Leaves of `hosts` those with `local` devices, where there are any, else those
// with the most; gives the share of their network that so many devices have.
double KeepAsMany(int64_t local, Hosts& hosts) {
  int64_t kept = 0;
  for (const auto* host : hosts) {
    if (host->count == local) kept = local;
  }
  if (kept == 0) {
    for (const auto* host : hosts) kept = std::max(kept, host->count);
  }
  std::erase_if(hosts, [&](const auto* host) { return host->count != kept; });
  return std::min(static_cast<double>(local) / static_cast<double>(kept), 1.0);
}

// Mean and standard deviation of the logarithms of their networks.
struct LogBandwidth {
  double mean = 0;
  double spread = 0;
};
LogBandwidth LogBandwidthOf(const Hosts& hosts) {
  double sum = 0;
  double squares = 0;
  for (const auto* host : hosts) {
    const double log = std::log(host->network->Resolve().bandwidth.base());
    sum += log;
    squares += log * log;
  }
  const auto count = static_cast<double>(hosts.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 0.0))};
}

// A network that nobody named: as hosts of the catalog have it that carry the
// device, with as many where there are any, else a device's share of those with
// the most; where none carries it, as all hosts of several devices. The mean of
// the logarithms.
HostNetwork UnnamedNetwork(const Device& device, int64_t local) {
  const std::string& carried = device.part_of ? *device.part_of : device.name;
  if (device.part_of) {
    // Hosts count whole chips.
    const Device& chip = hardware::DeviceCatalog::Shipped().Find(carried);
    local = model::CeilDivide(local,
                              std::max(chip.cores / device.cores, int64_t{1}));
  }
  Hosts hosts = hardware::InstanceCatalog::Shipped().UsualOfDevice(carried);
  const bool of_alike = hosts.empty();
  if (of_alike) hosts = HostsOfAlike(device);
  std::erase_if(hosts, [](const auto* host) { return !host->network; });
  const bool known = !hosts.empty();
  if (!known) hosts = AnyNetworkedHosts();
  if (hosts.empty()) {
    throw InputError(
        "--network: expected the network of a host, got none; no instance here "
        "has one that could stand for it; hint: --network 400Gbit/s");
  }
  const double share = known ? KeepAsMany(local, hosts) : 1.0;
  const LogBandwidth log = LogBandwidthOf(hosts);
  const hardware::LinkFacts& facts = hardware::FactsOfLinks();
  HostNetwork network;
  network.wire.name =
      !known     ? "as hosts of other devices have it"
      : of_alike ? fmt::format("as hosts of devices like {} have it", carried)
                 : fmt::format("as hosts of {} have it", carried);
  network.wire.reach = hardware::InterconnectReach::kNetwork;
  network.wire.latency = facts.network_step;
  network.wire.bandwidth = model::BytesPerSecond<>(share * std::exp(log.mean));
  network.sigma = std::hypot(facts.ring_share_sigma,
                             std::max(facts.unnamed_network_sigma, log.spread));
  network.named = false;
  return network;
}

}  // namespace

HostNetwork NetworkOf(const Device& device,
                      int64_t local,
                      const hardware::Instance* instance,
                      std::optional<model::BytesPerSecond<>> bandwidth) {
  const hardware::LinkFacts& facts = hardware::FactsOfLinks();
  HostNetwork network{{}, facts.ring_share_sigma, true};
  if (bandwidth) {
    network.wire.name = "the network that was named";
    network.wire.reach = hardware::InterconnectReach::kNetwork;
    // Nothing gets to it faster than over the devices' own links to their host.
    const model::BytesPerSecond<> most =
        device.host_bandwidth
            ? *device.host_bandwidth * static_cast<double>(local)
            : *bandwidth;
    network.wire.bandwidth = std::min(*bandwidth, most);
    network.wire.latency = facts.network_step;
  } else if (instance != nullptr && instance->network) {
    network.wire = instance->network->Resolve();
  } else {
    network = UnnamedNetwork(device, local);
  }
  return network;
}

int64_t RacksOf(const Device& device,
                int64_t devices,
                int64_t hosts,
                std::optional<model::BytesPerSecond<>> named) {
  if (named || devices / hosts >= device.peer_domain) return hosts;
  // As few as have room, all with as many hosts: 64 devices of racks of 72.
  int64_t racks = model::CeilDivide(devices, device.peer_domain);
  while (hosts % racks != 0) ++racks;
  return racks;
}

HostNetwork NetworkOfRacks(HostNetwork of_host, int64_t hosts, int64_t racks) {
  const int64_t of_rack = hosts / racks;
  of_host.wire.bandwidth =
      of_host.wire.bandwidth * static_cast<double>(of_rack);
  return of_host;
}

}  // namespace trainfare::calibrate
