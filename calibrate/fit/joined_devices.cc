#include "calibrate/fit/joined_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "calibrate/fit/rank_prior.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/rounding.h"
#include "model/sharding.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using hardware::ParameterInfo;
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

int64_t DevicesPerHost(const Observation& observation) {
  const int64_t hosts = observation.hosts;
  const int64_t devices = observation.device_count;
  if (devices % hosts != 0) {
    throw InputError(fmt::format(
        "nodes: expected a divisor of the {} devices, got {}", devices, hosts));
  }
  return devices / hosts;
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

namespace {

// As far as a share may be, either way: past it the link is another one.
constexpr double kFarthestShare = 30.0;

constexpr std::string_view kRingShare = "ring_share";
constexpr std::string_view kNetworkShare = "network_share";
constexpr std::string_view kRankShare = "rank_share";
constexpr std::string_view kSmallUnit = "small_unit";
constexpr std::string_view kExpertMatrix = "expert_matrix";
constexpr std::string_view kRankHost = "rank_host";

// Each with its unit, and which number it is.
struct JoinedParameter {
  std::string_view name;
  std::string_view unit;
  void (*set)(const FittedParameter& fitted, JoinedNumbers& numbers);
};
constexpr std::array kJoined = {
    JoinedParameter{kRingShare,
                    "1",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.ring_share = fitted.value;
                      numbers.ring_share_error = fitted.standard_error;
                    }},
    JoinedParameter{kNetworkShare,
                    "1",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.network_share = fitted.value;
                      if (!fitted.determined) return;
                      numbers.network_share_error = fitted.standard_error;
                    }},
    JoinedParameter{kRankShare,
                    "1",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.rank_share = fitted.value;
                      numbers.rank_share_error = fitted.standard_error;
                    }},
    JoinedParameter{kSmallUnit,
                    "s",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.unhidden.times.small_unit =
                          model::Second(fitted.value);
                      numbers.unhidden.small_unit_error = fitted.standard_error;
                    }},
    JoinedParameter{kExpertMatrix,
                    "s",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.unhidden.times.expert_matrix =
                          model::Second(fitted.value);
                      numbers.unhidden.expert_matrix_error =
                          fitted.standard_error;
                    }},
    JoinedParameter{kRankHost,
                    "s",
                    [](const FittedParameter& fitted, JoinedNumbers& numbers) {
                      numbers.rank_host = model::Second(fitted.value);
                      numbers.rank_host_error = fitted.standard_error;
                    }}};

// nullptr where there is none of the name.
const JoinedParameter* FindJoined(std::string_view name) {
  const auto* found =
      std::find_if(kJoined.begin(), kJoined.end(), [&](const auto& one) {
        return one.name == name;
      });
  return found == kJoined.end() ? nullptr : found;
}

// `farthest`: as far as it may be, either way.
ParameterInfo Info(std::string_view name,
                   std::string_view meaning,
                   double prior,
                   double sigma,
                   double farthest,
                   std::string_view determined_by) {
  return {.name = name,
          .unit = UnitOfJoined(name),
          .meaning = meaning,
          .prior = prior,
          .prior_sigma = sigma,
          .lower = prior / farthest,
          .upper = prior * farthest,
          .determined_by = determined_by};
}

ParameterInfo Factor(std::string_view name,
                     std::string_view meaning,
                     double prior,
                     double sigma,
                     std::string_view determined_by) {
  return Info(name, meaning, prior, sigma, kFarthestShare, determined_by);
}

ParameterInfo TimeOf(std::string_view name,
                     std::string_view meaning,
                     model::Seconds<> prior,
                     double sigma,
                     std::string_view determined_by) {
  return Info(name,
              meaning,
              model::ToSeconds(prior),
              sigma,
              internal::kFarthestHost,
              determined_by);
}

}  // namespace

std::vector<ParameterInfo> JoinedParameters(hardware::DeviceKind kind,
                                            double network_sigma) {
  const hardware::LinkFacts& links = hardware::FactsOfLinks();
  const hardware::HostFacts& hosts = hardware::FactsOfHosts();
  std::vector<ParameterInfo> infos = {
      Factor(kRingShare,
             "of a link's bandwidth that a ring gets inside a host",
             links.ring_share,
             links.ring_share_sigma,
             "steps over devices of a host that messages delay"),
      Factor(kNetworkShare,
             "of a host's network that its rings get",
             links.ring_share,
             network_sigma,
             "steps over several hosts that messages delay"),
      Factor(kRankShare,
             "what a rank computes beside others, of the device alone",
             1.0,
             internal::kRankShareSigma,
             "the same steps on one device and on several"),
      TimeOf(kSmallUnit,
             "of the host, by each unit too small to hide what it sends",
             hosts.small_unit,
             hosts.small_unit_sigma,
             "steps of adapters whose model is sharded"),
      TimeOf(kExpertMatrix,
             "of the host, by each matrix of an expert that is gathered",
             hosts.expert_matrix,
             hosts.expert_matrix_sigma,
             "steps of experts under zero3")};
  const hardware::KindFacts& facts = hardware::FactsOfKind(kind);
  if (facts.rank_host.base() > 0) {
    infos.push_back(TimeOf(kRankHost,
                           "what the host adds to a step over ranks",
                           facts.rank_host,
                           facts.rank_host_sigma,
                           "short steps on one device and on several"));
  }
  return infos;
}

std::string_view UnitOfJoined(std::string_view name) {
  const JoinedParameter* known = FindJoined(name);
  return known == nullptr ? "1" : known->unit;
}

JoinedNumbers NumbersOf(hardware::DeviceKind kind,
                        const std::vector<FittedParameter>& joined) {
  const hardware::LinkFacts& links = hardware::FactsOfLinks();
  const hardware::KindFacts& facts = hardware::FactsOfKind(kind);
  JoinedNumbers numbers;
  numbers.ring_share = numbers.network_share = links.ring_share;
  numbers.ring_share_error = links.ring_share_sigma;
  numbers.rank_host = facts.rank_host;
  numbers.rank_host_error = facts.rank_host_sigma;
  for (const FittedParameter& one : joined) {
    if (const JoinedParameter* known = FindJoined(one.name)) {
      known->set(one, numbers);
    }
  }
  return numbers;
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
