#pragma once

// What a device of any kind holds, by the plan of its kind.

#include <cstdint>
#include <optional>

#include "hardware/catalog/device.h"
#include "hardware/models/memory_plan.h"
#include "model/memory.h"
#include "model/workload.h"

namespace trainfare::hardware {

// What the framework and the driver take on a device.
model::MemorySurroundings SurroundingsOf(const Device& device, int64_t devices);

// Cores that train data parallel within a device, each with a model of its own
// in its plan; 1: the device has one for all of them.
int64_t CoresWithModels(const Device& device);

// The plan of one of `devices` ranks, the fullest where they have parts of a
// model, of which `ranks_per_device` share a device's memory; in less time where
// `memory` counted another batch before.
MemoryPlan PlanMemory(const Device& device,
                      const model::Workload& workload,
                      int64_t devices,
                      int64_t ranks_per_device,
                      model::MemoryOfBatches& memory);
MemoryPlan PlanMemory(const Device& device,
                      const model::Workload& workload,
                      int64_t devices = 1,
                      int64_t ranks_per_device = 1);

// Largest batch whose plan fits, up to `most`; nullopt when not even one
// sequence does.
std::optional<int64_t> LargestBatch(const Device& device,
                                    const model::Workload& workload,
                                    int64_t most,
                                    int64_t devices,
                                    int64_t ranks_per_device,
                                    model::MemoryOfBatches& memory);

}  // namespace trainfare::hardware
