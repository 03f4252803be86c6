#pragma once

// From kernels to time: the model of each kind of device, and its parameters.
//
// A model is one function template in hardware/models/<kind>.h. Its free
// parameters come as a span in the order of ParametersOf(kind); with T = double
// it simulates, with T = an autodiff scalar it is fitted: one formula, one
// place. Adding a kind: one header there with its row (models/kind.h), its name
// in DeviceKind and kDeviceKinds, its file in hardware/kinds/, and WithKind
// below.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/parameter.h"
#include "hardware/models/cpu.h"
#include "hardware/models/dataflow.h"
#include "hardware/models/gpu/gpu.h"
#include "hardware/models/neuron/neuron.h"
#include "hardware/models/step_time.h"
#include "hardware/models/systolic.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware {

// Calls `with` with the row of the kind (models/kind.h and its step): the one
// place that turns the name of a kind into its model.
template <class With>
decltype(auto) WithKind(DeviceKind kind, With&& with) {
  switch (kind) {
    case DeviceKind::kCpu:
      return with(models::CpuKind{});
    case DeviceKind::kGpu:
      return with(models::GpuKind{});
    case DeviceKind::kNeuron:
      return with(models::NeuronKind{});
    case DeviceKind::kSystolic:
      return with(models::SystolicKind{});
    case DeviceKind::kDataflow:
      return with(models::DataflowKind{});
  }
  ENSURE(false, "a kind of device without a model");
}

// The free parameters of one device: what its file knows of it in place of what
// is assumed of its kind (models/kind.h).
std::vector<ParameterInfo> ParametersOf(const Device& device);

// What to ask for in place of a precision that it lacks: the narrowest of 16
// bits and more, of 4 bits 8 where it has them; nullopt: it has no peak at all.
std::optional<model::Precision> NearestPrecision(const Device& device,
                                                 model::Precision asked);
// Throws InputError when the device has no engine for the precision.
void RequirePrecision(const Device& device, model::Precision precision);
// The same of all that a step has: of its optimizer, too.
void RequirePrecisions(const Device& device, const model::Workload& workload);

// The stack that a device's software makes of one: where it compiles graphs, a
// model written with kernels of GPUs is compiled as any other.
model::Fusion StackOn(const Device& device, model::Fusion asked);

// Shapes that a run shows its devices.
struct ShapePlan {
  int64_t distinct_lengths = 1;
  // Time to compile one shape is known, so that several can be priced.
  bool compile_time_known = false;
};

// Throws InputError with one reason when the device cannot do the workload at
// all: its precision, training on a chip for inference, gradient checkpointing
// that its software lacks, a model larger than a memory that nothing feeds, or
// many shapes where each compiles and nobody said how long that takes. Whether
// a batch fits in device memory is model/memory.h.
void RequireSupported(const Device& device,
                      const model::Workload& workload,
                      const ShapePlan& shapes = {});

// Time of one optimizer step (`accumulation` micro-batches) on one device,
// without communication. `kernels` must be ExpandKernels(workload).
template <class T>
StepTime<T> EstimateStep(const Device& device,
                         const model::Workload& workload,
                         const model::KernelList& kernels,
                         std::span<const T> parameters) {
  return WithKind(device.kind, [&](auto kind) {
    return kind.template Step<T>(device, workload, kernels, parameters);
  });
}

// Time of one kernel of the workload's precision by itself, in a loop of its
// own (`kernel.launches` times). Throws InputError for a device that runs
// compiled graphs: its model knows no kernel apart from its graph.
template <class T, class OfKind>
model::Seconds<T> EstimateKernelOf(OfKind kind,
                                   const Device& device,
                                   const model::Workload& workload,
                                   model::Phase phase,
                                   const model::Kernel& kernel,
                                   std::span<const T> parameters) {
  if constexpr (requires { &OfKind::template KernelAlone<T>; }) {
    return kind.template KernelAlone<T>(
        device, workload, phase, kernel, parameters);
  }
  throw model::InputError(device.name +
                          ": runs compiled graphs, its model has no times "
                          "of kernels by themselves");
}
template <class T>
model::Seconds<T> EstimateKernel(const Device& device,
                                 const model::Workload& workload,
                                 model::Phase phase,
                                 const model::Kernel& kernel,
                                 std::span<const T> parameters) {
  return WithKind(device.kind, [&](auto kind) {
    return EstimateKernelOf<T>(
        kind, device, workload, phase, kernel, parameters);
  });
}

}  // namespace trainfare::hardware
