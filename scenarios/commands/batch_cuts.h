#pragma once

// How a global batch, the sequences of one optimizer step, is cut over ranks
// and micro-batches.

#include <cstdint>
#include <vector>

#include "scenarios/job/cluster.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// The job with batches a device and accumulation that make up `global_batch`
// over the cluster, the largest batch first:
//
//   global batch = batch * accumulation * ranks
//
// Passes alone accumulate nothing. Empty where the ranks do not divide it.
std::vector<Scenario> CutsOf(const Scenario& job,
                             int64_t global_batch,
                             const Cluster& cluster);

}  // namespace trainfare::scenarios
