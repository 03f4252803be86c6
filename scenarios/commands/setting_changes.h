#pragma once

// Settings of a job, one at a time, by which its steps would take less time, or
// more.

#include <cstdint>
#include <span>
#include <string>

#include "hardware/catalog/device.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// What was asked about.
struct TimedJob {
  const hardware::Device& device;
  int64_t devices = 1;
  const JobEstimate& job;
};

// One setting: changes the scenario and says by which flags; empty: it is so
// already, or not to be had.
using SettingChange = std::string (*)(const TimedJob& asked, Scenario& changed);

// What may make steps faster, the same samples in as many steps; and those that
// change how many samples there are in a step.
std::span<const SettingChange> FasterSettings();
std::span<const SettingChange> LargerSteps();

// What makes steps slower where it is so and nobody said it, the same samples in
// as many steps.
std::span<const SettingChange> SlowerSettings();

}  // namespace trainfare::scenarios
