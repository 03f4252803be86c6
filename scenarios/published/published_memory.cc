// Peak memory, and which batches fit.

#include <fmt/format.h>

#include <cmath>

#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/memory.h"
#include "scenarios/job/estimate.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using hardware::DeviceKind;
using model::InputError;

namespace {

// What one core of a device may take: TPU cores have memory of their own.
model::Bytes<> CapacityOf(const Device& device) {
  return device.kind == DeviceKind::kSystolic ||
                 device.kind == DeviceKind::kNeuron
             ? device.memory_capacity / static_cast<double>(device.cores)
             : device.memory_capacity;
}
int64_t BatchOfCore(const Device& device, int64_t batch) {
  return device.kind == DeviceKind::kSystolic
             ? (batch + device.cores - 1) / device.cores
             : batch;
}

// Of parameters and gradients, a parameter.
PublishedPrediction BytesOfOne(const PublishedRuns& runs,
                               const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  model::Workload w;
  w.architecture = *run.architecture;
  // So short that the worst moment is the update, with all gradients there.
  w.sequence_length = 1;
  w.precision = *run.precision;
  if (run.fusion) w.stack.fusion = *run.fusion;
  w.optimizer = {model::OptimizerKind::kAdan,
                 model::OptimizerImplementation::kFused};
  const auto estimate = model::EstimateMemory(w, {});
  const auto count = static_cast<double>(TotalParameters(w.architecture));
  double bytes = 0;
  if (row.quantity == "bytes_per_gradient") {
    bytes = estimate.Of("gradients").base();
    if (bytes == 0) {
      throw InputError("gradients are not there at the worst moment");
    }
  } else {
    bytes = estimate.Of("parameters").base();
    // Autocast holds a narrow copy of each weight during a pass.
    if (model::Autocasts(w)) {
      bytes += static_cast<double>(model::BytesPerElement(w.precision)) * count;
    }
  }
  return Exactly(std::round(bytes / count * 1e3) / 1e3, "tensors of the model");
}

}  // namespace

PublishedPrediction MemoryOf(const PublishedRuns& runs,
                             const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  if (row.quantity == "memory_capacity") {
    return Exactly(FindDevice(*run.device).memory_capacity.base(),
                   "device file");
  }
  if (row.quantity == "bytes_per_parameter" ||
      row.quantity == "bytes_per_gradient") {
    return BytesOfOne(runs, row);
  }
  const Described d = runs.Describe(run);
  const Device& device = FindDevice(*run.device);
  model::MemorySurroundings surroundings =
      SurroundingsOf(device, run.device_count);
  if (row.quantity == "peak_memory") {
    // Printed to a tenth of a MB: the framework's own count of its tensors.
    // The driver's, which has the context in it, comes in whole MiB.
    surroundings.context = {};
  }
  const auto estimate = model::EstimateMemory(d.workload, surroundings);
  return Exactly(estimate.total().base(),
                 "tensors at the worst moment" + d.assumed);
}

PublishedPrediction FitsInMemory(const PublishedRuns& runs,
                                 const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  const std::string setting = run.setting.value_or("");
  PublishedPrediction p;
  if (row.quantity == "host_memory" || row.quantity == "swap") {
    throw InputError("a size of the machine: nothing to predict");
  }
  const Device& device = FindDevice(*run.device);
  if (setting == "gradient_checkpointing") {
    PublishedRun with = run;
    with.batch = 1;
    with.sequence_length = with.sequence_length.value_or(128);
    model::Workload w = runs.Describe(with).workload;
    w.gradient_checkpointing = true;
    p.fits = true;
    try {
      hardware::RequireSupported(device, w);
    } catch (const InputError& error) {
      p.fits = false;
      p.how = error.what();
    }
    return p;
  }
  if (device.kind == DeviceKind::kNeuron) return CompilesOnHost(runs, row);
  PublishedRun with = run;
  with.precision = run.precision.value_or(model::Precision::kFp16);
  with.batch = run.batch.value_or(device.cores);
  Described d = runs.Describe(with);
  if (!run.optimizer && device.kind == DeviceKind::kGpu) {
    d.workload.optimizer = {model::OptimizerKind::kAdan,
                            model::OptimizerImplementation::kFused};
  }
  d.workload.stack.fusion = run.fusion.value_or(model::Fusion::kEager);
  if (device.static_shapes) {
    // However written, the compiler fuses the update; as one graph
    // (TensorFlow) it also computes activations anew where memory is short.
    d.workload.optimizer.implementation =
        model::OptimizerImplementation::kFused;
    d.workload.gradient_checkpointing = run.stack == "tensorflow";
  }
  // A compiled graph reduces gradients where they are: no buckets.
  const model::MemorySurroundings surroundings =
      SurroundingsOf(device, device.static_shapes ? 1 : run.device_count);
  const model::Bytes<> capacity = CapacityOf(device);
  if (row.quantity == "fits") {
    d.workload.batch = BatchOfCore(device, *with.batch);
    const auto need = model::EstimateMemory(d.workload, surroundings);
    p.fits = need.total() <= capacity;
    p.how = fmt::format("{} of {}",
                        hardware::FormatBytes(need.total()),
                        hardware::FormatBytes(capacity));
    return p;
  }
  const auto largest = model::LargestBatch(d.workload, surroundings, capacity);
  p.value = static_cast<double>(largest.value_or(0));
  p.how =
      fmt::format("largest batch within {}", hardware::FormatBytes(capacity));
  return p;
}

}  // namespace trainfare::scenarios
