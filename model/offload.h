#pragma once

// What waits in the host's memory, what goes to and from it, and the update
// that the host makes. docs/models/sharding.md works an 8 B model by hand;
// tests/model/offload_test.cc asserts it.

#include <cstdint>
#include <vector>

#include "model/memory_term.h"
#include "model/sharding.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model {

// Whether gradients go to the host as the backward pass makes them. Ranks that
// hold all of them (zero1) send their share when the last micro-batch is done.
bool SendsGradientsToHost(const Parallel& parallel);

// Bytes of one rank: of its share of a unit's parameters as they come to the
// device, and of its share of so many gradients as they go, each micro-batch.
//
// Gradients of masters are widened on the way. (DeepSpeed brings 2 bytes back,
// and 2 down, in all micro-batches but the last, which sends 4: 4 in each.
// FSDP's shards are summed in 4 bytes.) Source: DeepSpeed, stage_1_and_2.py,
// async_accumulate_grad_in_cpu_via_gpu.
int64_t ParametersFromHost(const Workload& workload, const ShardUnit& unit);
int64_t GradientsToHost(const Workload& workload, int64_t elements);

// Bytes of its share of what the host updated that come back to the device; 0
// where the parameters are on the host anyway.
int64_t UpdatedFromHost(const Workload& workload);

// Bytes that one rank's update streams through the host's memory: it reads
// gradients, weights and state, and writes weights, state and, where weights
// are masters of narrow ones on the device, these: 30 a parameter of AdamW.
int64_t HostUpdateBytes(const Workload& workload);

// What one rank holds in its host's memory. The state stands there with half as
// much again in buffers (`additional_buffer_factor` 1.5 of DeepSpeed's
// estimate_zero2_model_states_mem_needs and its like for stage 3). Empty where
// nothing is offloaded.
std::vector<MemoryTerm> HostMemoryOf(const Workload& workload);

// The ways of one device to its host's memory, and of all of its ranks' updates
// through it.
template <class T>
struct HostPath {
  BytesPerSecond<T> link;    // one way, of each rank
  BytesPerSecond<T> memory;  // of all ranks of a host together
  int64_t ranks = 1;         // of one host
};

// The ranks of a host update at once, and share its memory's bandwidth.
template <class T>
Seconds<T> HostUpdateTime(const Workload& workload, const HostPath<T>& path) {
  const auto bytes = static_cast<double>(HostUpdateBytes(workload));
  return Byte(bytes * static_cast<double>(path.ranks)) / path.memory;
}

}  // namespace trainfare::model
