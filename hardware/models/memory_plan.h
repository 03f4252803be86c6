#pragma once

// What a step holds in a device's memory as the device's software arranges it,
// and what is computed anew where that is too much. Memory and time ask here,
// so that what fits is what is timed. docs/models/memory.md, "Compiled graphs".

#include "hardware/catalog/device.h"
#include "model/memory.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

struct MemoryPlan {
  model::MemoryEstimate needed;  // of the whole device
  model::Bytes<> capacity;       // of it
  // Share of the blocks whose scores of attention and elementwise results the
  // backward pass computes anew for want of memory.
  double anew = 0;

  bool fits() const { return needed.total() <= capacity; }
};

// How a kind of device holds a workload of one rank in `capacity`. `memory`
// counts, faster where only the batch is another than the last time.
using PlanMemoryFunction = MemoryPlan (*)(const Device&,
                                          const model::Workload&,
                                          const model::MemorySurroundings&,
                                          model::Bytes<> capacity,
                                          model::MemoryOfBatches& memory);

// All of it at once, as a framework without a compiler does.
MemoryPlan PlanPlainMemory(const Device& device,
                           const model::Workload& workload,
                           const model::MemorySurroundings& surroundings,
                           model::Bytes<> capacity,
                           model::MemoryOfBatches& memory);

// Graphs compiled for cores that are data parallel: each holds the model, the
// update and the all-reduce work in place, and each takes its share of the
// batch and of the memory.
MemoryPlan PlanCoresMemory(const Device& device,
                           const model::Workload& workload,
                           const model::MemorySurroundings& surroundings,
                           model::Bytes<> capacity,
                           model::MemoryOfBatches& memory);

// The same of a compiler that computes anew what does not fit, for stacks that
// it sees whole: the scores of attention and what is elementwise, in as many
// blocks as it must. Of a block there remain its input and the results of its
// products: queries, keys, values, context, attention's residual, the inner
// product of the feed-forward part.
//
//   f   = (M_0 - C) / (M_0 - M_1)
//   M_1 = M_0 - L A + L t (6 h + i) e
//
//   M_0  memory with nothing anew, M_1 with all blocks           [B]
//   C    capacity                                                [B]
//   L A  blocks, and what one keeps with nothing anew            [1], [B]
//   t    tokens; h, i hidden and inner size; e bytes an element
//
// After Korthikanti et al., "Reducing activation recomputation in large
// transformer models", MLSys 2023. Check:
// tests/hardware/models/memory_plan_test.cc.
MemoryPlan PlanRecomputingMemory(const Device& device,
                                 const model::Workload& workload,
                                 const model::MemorySurroundings& surroundings,
                                 model::Bytes<> capacity,
                                 model::MemoryOfBatches& memory);

// A pipeline that samples flow through: a batch enters in parts as large as
// there is room for. Weights that stream in from outside are not on the chip,
// nor are their gradients and the optimizer's state.
MemoryPlan PlanPipelineMemory(const Device& device,
                              const model::Workload& workload,
                              const model::MemorySurroundings& surroundings,
                              model::Bytes<> capacity,
                              model::MemoryOfBatches& memory);

}  // namespace trainfare::hardware
