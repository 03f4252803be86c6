#pragma once

// A published run as a job that the product answers.

#include <cstdint>
#include <string>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "calibrate/records/import/published.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// What a run asks, and of which devices.
struct PublishedJob {
  Scenario scenario;
  const hardware::Device* device = nullptr;
  const hardware::Instance* instance = nullptr;  // nullptr: not said
  int64_t devices = 1;

  // As `predict` puts the devices together. Throws InputError.
  Cluster ClusterFor(const calibrate::Predictor& predictor) const;
};

// Throws InputError that says what of the run is not known.
PublishedJob JobOf(const calibrate::Published& published,
                   const calibrate::PublishedRun& run);

// "FILE.yaml#run": the run of a file of published figures, whose folder has
// what it refers to.
bool NamesPublishedRun(std::string_view name);
// Throws InputError, with the nearest names.
PublishedJob LoadPublishedJob(const std::string& name);

}  // namespace trainfare::scenarios
