#pragma once

// Which of many measurements a device is fitted to.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/joined_devices.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// One step that a fit takes; over several devices as they are joined.
struct Step {
  Observation observation;
  std::optional<JoinedDevices> joined;
};

// How many figures a fit does not take, by why: "of l4".
using LeftOut = std::map<std::string, int64_t>;
// Why those of another device are left out: "of l4", or whose nobody knows.
std::string WhyOfAnother(const std::string& device);
inline constexpr const char* kOverUnknownLinks =
    "of several devices, over links that are not known";

// Those of one device.
struct OwnFigures {
  std::vector<Step> steps;
  std::vector<KernelObservation> kernels;
  std::vector<EngineProfile> profiles;
  LeftOut left_out;  // of those that these were chosen from

  bool empty() const {
    return steps.empty() && kernels.empty() && profiles.empty();
  }
};

// Who made them, in order. Kernels by themselves are of the trainer alone.
std::vector<std::string> SourcesOf(const OwnFigures& own);

// Those of the device, and steps and profiles of its alike parts, as of as many
// of them with one graph (PartsOf). Throws InputError where there are none, and
// says whose the others are.
OwnFigures OfDevice(const hardware::Device& device,
                    const std::vector<Observation>& observations,
                    const std::vector<KernelObservation>& kernels,
                    const std::vector<EngineProfile>& profiles);

}  // namespace trainfare::calibrate
