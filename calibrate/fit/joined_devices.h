#pragma once

// Devices that train together over links that nobody timed: how they are
// joined by datasheets (the network of their hosts: host_network.h; what a fit of
// such runs may move of that: joined_parameters.h).

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/fit/host_network.h"
#include "calibrate/fit/joined_parameters.h"
#include "calibrate/fit/rank_group.h"
#include "calibrate/fit/rank_placement.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/interconnect.h"
#include "hardware/catalog/kind_facts.h"
#include "model/data_parallel.h"
#include "model/offload.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

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
