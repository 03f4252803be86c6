#pragma once

// What predict is asked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/asked_job.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/origin.h"

namespace trainfare::scenarios {

struct PredictOptions {
  std::string scenario;  // path or name; empty: overrides.model says it
  std::vector<std::string> device;     // each by itself; empty: not said
  std::vector<std::string> instances;  // the same
  std::optional<std::string> fit;      // path
  std::optional<int64_t> devices;
  std::optional<int64_t> hosts;         // as many devices on each
  std::optional<std::string> network;   // "400Gbit/s", of each host
  std::optional<std::string> largest;   // batch, length or model
  std::optional<std::string> measured;  // "1.9s", a step of the one job
  bool spot = false;
  PriceOptions prices;
  Overrides overrides;
  bool charts = false;  // for a page
  bool trace = false;   // of a step
  bool json = true;     // whether the report is read as JSON
  Origin origin;
};

}  // namespace trainfare::scenarios
