#include "hardware/models/device_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "hardware/catalog/kind_facts.h"
#include "hardware/models/kind.h"
#include "model/bisection.h"
#include "model/parallel.h"
#include "model/split.h"
#include "model/trainable.h"
#include "model/validate.h"

namespace trainfare::hardware {
namespace {

// Batches that are tried where a line leads, before halving is surer.
constexpr int kTriesAlongLine = 5;

// Beyond tensors, as a share of them; XLA lays its out.
double GapsOf(const Device& device, const model::Workload& w) {
  if (device.kind != DeviceKind::kGpu ||
      w.stack.fusion == model::Fusion::kXla) {
    return 0.0;
  }
  return model::AllBlocksComputedAgain(w) ? FactsOfGpus().memory_gaps_anew
                                          : FactsOfGpus().memory_gaps;
}

// What one rank of these needs without gaps.
MemoryPlan PlanOfRank(const Device& device,
                      const model::Workload& workload,
                      int64_t devices,
                      int64_t ranks_per_device,
                      model::MemoryOfBatches& memory) {
  const auto plan = [&](const model::Workload& held) {
    return KindOf(device).plan_memory(
        device,
        held,
        SurroundingsOf(device, devices),
        device.memory_capacity / static_cast<double>(ranks_per_device),
        memory);
  };
  if (!device.inference_only) return plan(workload);
  // What never trains keeps no fp32 weights to round.
  model::Workload held = workload;
  held.stack.narrow_weights = true;
  return plan(held);
}

// Stages of which one holds most, whatever the batch: all but those that are as
// one before them, which holds no fewer passes.
std::vector<int64_t> FullStages(const model::Workload& workload) {
  if (workload.parallel.pipeline == 1) return {0};
  std::vector<int64_t> stages;
  std::vector<model::Workload> parts;
  for (int64_t stage = 0; stage < workload.parallel.pipeline; ++stage) {
    model::Workload part = model::OfStage(workload, stage);
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) continue;
    stages.push_back(stage);
    parts.push_back(std::move(part));
  }
  return stages;
}

// What one rank needs without gaps, of the fullest of these stages where ranks
// have parts of a model.
MemoryPlan PlanTensors(const Device& device,
                       const model::Workload& workload,
                       const std::vector<int64_t>& stages,
                       int64_t devices,
                       int64_t ranks_per_device,
                       model::MemoryOfBatches& memory) {
  if (!model::DividesModel(workload.parallel)) {
    return PlanOfRank(device, workload, devices, ranks_per_device, memory);
  }
  const int64_t parts = model::PartsOfWeights(workload.parallel);
  std::optional<MemoryPlan> fullest;
  for (const int64_t stage : stages) {
    MemoryPlan plan = PlanOfRank(device,
                                 model::OfStageInFlight(workload, stage),
                                 devices / parts,
                                 ranks_per_device,
                                 memory);
    if (!fullest || fullest->needed.total() < plan.needed.total()) {
      fullest = std::move(plan);
    }
  }
  return *fullest;
}

}  // namespace

model::MemorySurroundings SurroundingsOf(const Device& device,
                                         int64_t devices) {
  model::MemorySurroundings surroundings;
  surroundings.communication_buckets = devices > 1;
  surroundings.context = device.context;
  surroundings.workspace = device.workspace;
  return surroundings;
}

int64_t CoresWithModels(const Device& device) {
  const PlanMemoryFunction plan = KindOf(device).plan_memory;
  const bool by_core = plan == PlanCoresMemory || plan == PlanRecomputingMemory;
  return by_core ? device.cores : 1;
}

MemoryPlan PlanMemory(const Device& device,
                      const model::Workload& workload,
                      int64_t devices,
                      int64_t ranks_per_device,
                      model::MemoryOfBatches& memory) {
  MemoryPlan plan = PlanTensors(device,
                                workload,
                                FullStages(workload),
                                devices,
                                ranks_per_device,
                                memory);
  model::MemoryEstimate& needed = plan.needed;
  needed.in_gaps = needed.without_context() * GapsOf(device, workload);
  return plan;
}

MemoryPlan PlanMemory(const Device& device,
                      const model::Workload& workload,
                      int64_t devices,
                      int64_t ranks_per_device) {
  model::MemoryOfBatches memory;
  return PlanMemory(device, workload, devices, ranks_per_device, memory);
}

std::optional<int64_t> LargestBatch(const Device& device,
                                    const model::Workload& workload,
                                    int64_t most,
                                    int64_t devices,
                                    int64_t ranks_per_device,
                                    model::MemoryOfBatches& memory) {
  most = std::min(most, model::LargestCountableBatch(workload));
  model::Workload w = workload;
  model::Bytes<> capacity;
  const std::vector<int64_t> stages = FullStages(workload);
  const auto needed = [&](int64_t batch) {
    w.batch = batch;
    const MemoryPlan plan =
        PlanTensors(device, w, stages, devices, ranks_per_device, memory);
    capacity = plan.capacity;
    return plan.needed.total();
  };
  // What is needed never falls with the batch.
  model::Bytes<> at_low = needed(1);
  if (at_low > capacity) return std::nullopt;
  int64_t low = 1;
  int64_t high = most + 1;  // the first that is too large, as far as is known
  int64_t next = std::min<int64_t>(8, most);
  for (int tries = 0; tries < kTriesAlongLine && high - low > 1; ++tries) {
    const int64_t from = low;
    const model::Bytes<> at_from = at_low;
    const model::Bytes<> at_next = needed(next);
    if (at_next <= capacity) {
      low = next;
      at_low = at_next;
    } else {
      high = next;
    }
    // Large batches need evenly more: on along the line through both.
    const model::Bytes<> slope =
        (at_next - at_from) / static_cast<double>(next - from);
    const double more = slope.base() > 0
                            ? std::floor((capacity - at_low) / slope)
                            : static_cast<double>(high - low);
    next = std::clamp(low + static_cast<int64_t>(std::min(
                                more, static_cast<double>(high - low))),
                      std::min(low + 1, high - 1),
                      high - 1);
  }
  return model::LargestNear(next, low, high, [&](int64_t batch) {
    return needed(batch) <= capacity;
  });
}

}  // namespace trainfare::hardware
