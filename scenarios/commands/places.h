#pragma once

// Where a job may run, out of the catalog.

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog/instance.h"
#include "scenarios/commands/recommend_options.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// Some devices of each of some hosts; by itself a device without a host.
struct Placement {
  const hardware::Instance* instance = nullptr;
  std::string device;
  int64_t devices = 1;
  int64_t hosts = 1;
  bool here = false;  // the processor of this machine
};

// One device, and all, of an instance, and all of several hosts: as many as are
// asked for, or have the ranks of the scenario; of a global batch also numbers of
// devices and hosts in between.
void AddPlaces(const hardware::Instance& instance,
               const Scenario& scenario,
               const RecommendOptions& options,
               std::vector<Placement>& places);

}  // namespace trainfare::scenarios
