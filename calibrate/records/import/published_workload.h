#pragma once

// A published run as what the models need.

#include <cstdint>
#include <functional>

#include "calibrate/records/import/published.h"
#include "model/run.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What of a run the models need. Throws InputError that says what is not known.
model::Workload WorkloadOf(const PublishedRun& run);

// Samples of one epoch of `run`: as it says, or within its range what other
// runs on the same data say that are not the same configuration. Throws
// InputError.
// `keep`: which other runs may say so; empty: all.
using KeepRun = std::function<bool(const PublishedRun&)>;
int64_t EpochSamples(const Published& published,
                     const PublishedRun& run,
                     const KeepRun& keep = {});

// Epochs, samples and batch of a run; lengths and what is besides are left to
// the caller. Throws InputError.
model::RunPlan PlanOf(const Published& published,
                      const PublishedRun& run,
                      const KeepRun& keep = {});

}  // namespace trainfare::calibrate
