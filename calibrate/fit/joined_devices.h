#pragma once

// Devices that train together over links that nobody timed: how they are
// joined by datasheets, and what a fit of such runs may move of that.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/fitted_parameter.h"
#include "calibrate/fit/rank_group.h"
#include "calibrate/fit/rank_placement.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/catalog/interconnect.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/catalog/parameter.h"
#include "model/data_parallel.h"
#include "model/offload.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What joins the hosts of a cluster.
struct HostNetwork {
  hardware::Interconnect wire;  // bandwidth of a whole host
  // How far a ring's share of it may be off, as the standard deviation of its
  // logarithm: more where nobody said which network it is.
  double sigma = 0;
  bool named = true;
};

struct JoinedDevices {
  int64_t devices = 1;
  int64_t hosts = 1;  // alike ones, as many devices in each
  // What a network joins (RacksOf); several have one.
  int64_t racks = 1;
  std::optional<HostNetwork> network;
  // More than one of a rack have a link by its datasheet.
  std::optional<hardware::Interconnect> link;
  // Where a device is one of a chip's alike parts (a NeuronCore): the chip, and
  // how many of its parts are devices here. What they send each other is in the
  // step of one already (docs/models/trainium.md); the link is between chips.
  std::string chip;
  int64_t devices_per_chip = 1;

  // Whose gradients go over the link.
  int64_t chips() const { return devices / devices_per_chip; }
  int64_t devices_of_host() const { return devices / hosts; }
  int64_t devices_of_rack() const { return devices / racks; }
};

// `devices` of a host, by the links of the device's own datasheet, or of the
// chip's that it is a part of. Throws InputError when no link is known, or when
// a chip would be used in part.
JoinedDevices JoinedInHost(const hardware::Device& device, int64_t devices);

// Devices of each host of a row. Throws InputError where they do not divide
// into the hosts.
int64_t DevicesPerHost(const Observation& observation);

// What a network joins: the hosts, or where peer links reach beyond one (racks
// of NVLink, slices of TPUs) as few alike racks of whole hosts as hold them, one
// of which has no network. Where a network was named, it joins the hosts.
int64_t RacksOf(const hardware::Device& device,
                int64_t devices,
                int64_t hosts,
                std::optional<model::BytesPerSecond<>> named);

// The network of hosts with `local` devices each: of `bandwidth` a host, else
// the one that `instance` names (it may be nullptr), else what hosts have in
// the catalog, which is less sure.
HostNetwork NetworkOf(const hardware::Device& device,
                      int64_t local,
                      const hardware::Instance* instance,
                      std::optional<model::BytesPerSecond<>> bandwidth);

// That of racks, each with the networks of its hosts.
HostNetwork NetworkOfRacks(HostNetwork of_host, int64_t hosts, int64_t racks);

// Those of a row of measurements. Throws InputError as JoinedInHost, and where
// they do not divide into the hosts.
JoinedDevices JoinedBy(const hardware::Device& device,
                       const Observation& observation);

// Those of a row of several devices that a fit of one takes: a whole step, over
// links that are known. Ranks on one processor are fitted as groups
// (calibrate/fit/rank_fit.h).
std::optional<JoinedDevices> FittableOver(const hardware::Device& device,
                                          const Observation& observation);

// The workload as each of so many devices sees it.
model::Workload OnDevices(const model::Workload& asked, int64_t devices);

// Whether chips send each other, or their hosts, what is not in the step of
// one.
bool SendsBetween(const JoinedDevices& joined, const model::Workload& workload);

// The way of each device to its host's memory, where the workload offloads
// anything. Throws InputError where the device's link to its host is not known,
// or weights stream in over it anyway.
std::optional<model::HostPath<double>> HostPathOf(
    const model::Parallel& parallel,
    const JoinedDevices& joined,
    const hardware::Device& device);

// Where the ranks of a workload, whose data is known, lie over them.
RankPlacement PlacementOf(const model::Parallel& parallel,
                          const JoinedDevices& joined);

// Throws InputError where a job cannot lie over them so: HostPathOf() has no
// way, groups of ranks that divide a model do not fill hosts, or shards are
// neither whole hosts of a copy nor a part of a host that others of its size
// fill.
void RequireJoinable(const model::Parallel& parallel,
                     const JoinedDevices& joined,
                     const hardware::Device& device);

// What rows over several devices may say beside the device's own parameters, as
// parameters of the same fit (docs/models/data_parallel.md):
//
//   ring_share     of a link's bandwidth that a ring gets inside a host
//   network_share  of a host's network that its rings get; `network_sigma` wide
//   rank_share     what a rank computes beside others, of the device alone
//   small_unit     of the host, by each unit too small to hide what it sends
//   expert_matrix  the same by each matrix of an expert
//   rank_host      what the host adds to a step; only where the kind has it
//
// Priors: hardware/kinds/*.yaml.
std::vector<hardware::ParameterInfo> JoinedParameters(hardware::DeviceKind kind,
                                                      double network_sigma);
// Where each stands among them.
enum class JoinedPlace : size_t {
  kRingShare,
  kNetworkShare,
  kRankShare,
  kSmallUnit,
  kExpertMatrix,
  kRankHost
};

// The unit of that parameter; "1" where there is none of the name.
std::string_view UnitOfJoined(std::string_view name);

// Their values, and what each leaves open: those of a fit's rows, else the
// priors'.
struct JoinedNumbers {
  double ring_share = 0;
  double ring_share_error = 0;  // of the logarithm, as the others
  double network_share = 0;
  std::optional<double> network_share_error;  // absent: as of the network
  double rank_share = 1;
  double rank_share_error = 0;
  UnhiddenUnitsFit unhidden;
  model::Seconds<> rank_host;
  double rank_host_error = 0;
};
JoinedNumbers NumbersOf(hardware::DeviceKind kind,
                        const std::vector<FittedParameter>& joined);

// The network of ranks that nobody timed, at such shares of its links. There is
// a link, or a device a host.
template <class T>
model::RankNetwork<T> DatasheetNetwork(const JoinedDevices& joined,
                                       const T& ring_share,
                                       const T& network_share) {
  const auto level = [](const hardware::Interconnect& wire, const T& share) {
    return model::RingLevel<T>{
        model::Seconds<T>(T(wire.latency.base())),
        model::BytesPerSecond<T>(wire.bandwidth.base() * share),
        wire.sums_in_switch ? hardware::FactsOfLinks().summing_switch
                            : model::SummingSwitch()};
  };
  model::RankNetwork<T> network;
  network.hosts = joined.racks;
  if (joined.network) {
    const int64_t of_rack = joined.chips() / joined.racks;
    const auto local = static_cast<double>(of_rack);
    network.across = level(joined.network->wire, network_share / local);
  }
  // A rank alone in its rack has only the network.
  network.alone =
      joined.link ? level(*joined.link, ring_share) : network.across;
  network.beside = network.alone;
  return network;
}

// Ranks that nobody timed: links by their datasheets, computation and
// communication do not slow each other.
RankFit DatasheetRanks(const JoinedDevices& joined,
                       const JoinedNumbers& numbers);

}  // namespace trainfare::calibrate
