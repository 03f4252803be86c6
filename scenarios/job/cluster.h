#pragma once

// Devices that train together, and what connects them.

#include <cstdint>
#include <optional>

#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::scenarios {

using calibrate::HostNetwork;

// Devices that train together, each a rank, as a job has them.
struct Cluster : calibrate::JoinedDevices {
  // Ranks as they were measured; then these answer, not the links.
  std::optional<calibrate::RankFit> ranks;
  int64_t measured_ranks = 0;  // of `ranks` where they were; 0: none were
  // Whether just so many were, in one host.
  bool measured() const { return hosts == 1 && measured_ranks == devices; }
  // The instance is rented for the job, so that it has to start first.
  bool rented = false;
  // Devices of that instance beside those that train.
  int64_t idle_devices = 0;
  // The memory of the host that they are in; absent: not known.
  std::optional<model::Bytes<>> host_memory;

  // Ranks on one processor are one device.
  int64_t ranks_per_device() const {
    return ranks ? ranks->ranks_per_device : 1;
  }
};

// `devices` of a host of `instance`, or beside each other by the links of the
// device's own datasheet, or of the chip's that it is a part of. Throws
// InputError when no link is known, or when a chip would be used in part.
Cluster ClusterOf(const hardware::Instance& instance, int64_t devices);
Cluster ClusterOf(const hardware::Device& device, int64_t devices);

// How many of `device` an instance has: its own, or their alike parts.
int64_t DevicesOf(const hardware::Instance& instance,
                  const hardware::Device& device);

// The same, by what the predictor's fit knows of several ranks where it does.
// An instance takes only ranks inside a host, and none whose ring is faster
// than its own link: it was measured over another one. The predictor's
// device may be a part of the instance's.
Cluster ClusterOf(const hardware::Instance& instance,
                  int64_t devices,
                  const calibrate::Predictor& predictor);
Cluster ClusterOf(const calibrate::Predictor& predictor, int64_t devices);

// So many of `host`, over a network of `bandwidth` a host, else of the one that
// `instance` names (it may be nullptr), else of what hosts have in the catalog,
// which is less sure. Throws InputError for more devices than anybody asks
// about.
Cluster OverHosts(Cluster host,
                  int64_t hosts,
                  const hardware::Device& device,
                  const hardware::Instance* instance,
                  std::optional<model::BytesPerSecond<>> bandwidth);

// The cluster that a row of measurements names.
Cluster ClusterOf(const calibrate::Predictor& predictor,
                  const calibrate::Observation& observation);

}  // namespace trainfare::scenarios
