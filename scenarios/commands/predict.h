#pragma once

// trainfare predict: one scenario on one device or instance.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

struct PredictOptions {
  std::string scenario;  // path or name; empty: overrides.model says it
  std::vector<std::string> device;     // each by itself; empty: not said
  std::vector<std::string> instances;  // the same
  std::optional<std::string> fit;      // path
  std::optional<int64_t> devices;
  std::optional<int64_t> hosts;        // as many devices on each
  std::optional<std::string> network;  // "400Gbit/s", of each host
  std::optional<std::string> largest;  // batch, length or model
  bool spot = false;
  PriceOptions prices;
  Overrides overrides;
  bool charts = false;  // for a page
  bool trace = false;   // of a step
  bool json = true;     // whether the report is read as JSON
  Origin origin;
};

Report Predict(const PredictOptions& options);

// What a flag names of the catalogs. Throw InputError that begins with it.
const hardware::Device& FindDevice(std::string_view flag,
                                   const std::string& name);
// Where a family's name is its usual form.
const hardware::Device& FindUsualDevice(std::string_view flag,
                                        const std::string& name);
const hardware::Instance& FindInstance(std::string_view flag,
                                       const std::string& name);

}  // namespace trainfare::scenarios
