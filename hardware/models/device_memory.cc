#include "hardware/models/device_memory.h"

#include <algorithm>

#include "hardware/models/kind.h"
#include "model/bisection.h"
#include "model/validate.h"

namespace trainfare::hardware {

model::MemorySurroundings SurroundingsOf(const Device& device,
                                         int64_t devices) {
  model::MemorySurroundings surroundings;
  surroundings.communication_buckets = devices > 1;
  surroundings.context = device.context;
  surroundings.workspace = device.workspace;
  return surroundings;
}

MemoryPlan PlanMemory(const Device& device,
                      const model::Workload& workload,
                      int64_t devices,
                      int64_t ranks_per_device) {
  const model::Bytes<> capacity =
      device.memory_capacity / static_cast<double>(ranks_per_device);
  const auto plan = [&](const model::Workload& held) {
    return KindOf(device).plan_memory(
        device, held, SurroundingsOf(device, devices), capacity);
  };
  if (!device.inference_only) return plan(workload);
  // What never trains keeps no fp32 weights to round.
  model::Workload held = workload;
  held.stack.narrow_weights = true;
  return plan(held);
}

std::optional<int64_t> LargestBatch(const Device& device,
                                    const model::Workload& workload,
                                    int64_t most,
                                    int64_t devices,
                                    int64_t ranks_per_device) {
  // Where parts of a batch come and go, any might fit.
  most = std::min(most, model::LargestCountableBatch(workload));
  model::Workload w = workload;
  const auto plan = [&](int64_t batch) {
    w.batch = batch;
    return PlanMemory(device, w, devices, ranks_per_device);
  };
  const auto fits = [&](int64_t batch) { return plan(batch).fits(); };
  if (!fits(1)) return std::nullopt;
  // What is needed never falls with the batch: in long strides it is soon too
  // much.
  constexpr int64_t kStride = 8;
  int64_t low = 1;
  int64_t high = std::min(kStride, most);
  MemoryPlan at_high = plan(high);
  while (at_high.fits()) {
    if (high == most) return most;
    low = high;
    high = std::min(kStride * low, most);
    at_high = plan(high);
  }
  // Large batches need evenly more: back along that line to what there is.
  const int64_t half = std::max(low, high / 2);
  const MemoryPlan at_half = plan(half);
  const model::Bytes<> needed = at_high.needed.total();
  const double excess =
      (needed - at_high.capacity) / (needed - at_half.needed.total());
  const double back = std::ceil(excess * static_cast<double>(high - half));
  const int64_t guess = back < static_cast<double>(high)
                            ? high - static_cast<int64_t>(back)
                            : low;
  (at_half.fits() ? low : high) = half;
  return model::LargestNear(guess, low, high, fits);
}

}  // namespace trainfare::hardware
