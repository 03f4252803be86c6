#pragma once

// trainfare predict: one scenario on one device or instance.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// What flags change in a scenario, or say in place of one.
struct Overrides {
  std::optional<std::string> model;     // preset, or path of a config.json
  std::optional<int64_t> samples;       // of the training data
  std::vector<std::string> settings;    // "dataset.train=1000", any key
  std::vector<int64_t> batches;         // empty: the scenario's
  std::vector<int64_t> lengths;         // static; empty: the scenario's padding
  std::vector<std::string> precisions;  // empty: the scenario's
  std::optional<int64_t> epochs;
  std::optional<std::string> work;
  std::optional<std::string> start_up;  // a time, or 0
};

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
  Origin origin;
};

// Throws InputError that names the flag.
void RequireCount(std::string_view flag, int64_t value, int64_t most);

// The scenario once for every batch, length and precision asked for. Throws
// InputError for a value that the model or the format does not allow.
std::vector<Scenario> Variants(const Scenario& scenario,
                               const Overrides& overrides);

Report Predict(const PredictOptions& options);

}  // namespace trainfare::scenarios
