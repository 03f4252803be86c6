#pragma once

// The network between hosts of devices: one that was named, or what hosts of the
// catalog have that carry the device; and what it joins.

#include <cstdint>
#include <optional>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/catalog/interconnect.h"
#include "model/units.h"

namespace trainfare::calibrate {

// What joins the hosts of a cluster.
struct HostNetwork {
  hardware::Interconnect wire;  // bandwidth of a whole host
  // How far a ring's share of it may be off, as the standard deviation of its
  // logarithm: more where nobody said which network it is.
  double sigma = 0;
  bool named = true;
};

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

}  // namespace trainfare::calibrate
