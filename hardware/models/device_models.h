#pragma once

// From kernels to time: the model of each kind of device, and its parameters.
//
// A model is one function template in hardware/models/<kind>.h. Its free
// parameters come as a span in the order of ParametersOf(kind); with T = double
// it simulates, with T = an autodiff scalar it is fitted: one formula, one
// place. Adding a kind: one header there and one row in EstimateStep below.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/models/cpu.h"
#include "hardware/models/dataflow.h"
#include "hardware/models/gpu/gpu.h"
#include "hardware/models/neuron/neuron.h"
#include "hardware/models/parameter.h"
#include "hardware/models/step_time.h"
#include "hardware/models/systolic.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware {

// The free parameters of a kind's model with their priors, in order.
std::span<const ParameterInfo> ParametersOf(DeviceKind kind);

// The same of one device: what its file knows of it in place of what is assumed
// of its kind.
std::vector<ParameterInfo> ParametersOf(const Device& device);

// The parameter of which a kernel by itself has another value than in a step,
// where there is one: on a processor an operation's fixed cost, in a step with
// the module's and autograd's share of it.
std::optional<size_t> ParameterOfItsOwnAlone(DeviceKind kind);

// Throws InputError when the device has no engine for the precision.
void RequirePrecision(const Device& device, model::Precision precision);

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
  switch (device.kind) {
    case DeviceKind::kCpu:
      return models::CpuStep<T>(device, workload, kernels, parameters);
    case DeviceKind::kGpu:
      return models::GpuStep<T>(device, workload, kernels, parameters);
    case DeviceKind::kNeuron:
      return models::NeuronStep<T>(device, workload, kernels, parameters);
    case DeviceKind::kSystolic:
      return models::SystolicStep<T>(device, workload, kernels, parameters);
    case DeviceKind::kDataflow:
      return models::DataflowStep<T>(device, workload, kernels, parameters);
  }
  ENSURE(false, "a kind of device without a model");
}

// Time of one kernel of the workload's precision by itself, in a loop of its
// own (`kernel.launches` times). Throws InputError for a device that runs
// compiled graphs: its model knows no kernel apart from its graph.
template <class T>
model::Seconds<T> EstimateKernel(const Device& device,
                                 const model::Workload& workload,
                                 model::Phase phase,
                                 const model::Kernel& kernel,
                                 std::span<const T> parameters) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return models::CpuKernelAlone<T>(
          device, workload, phase, kernel, parameters);
    case DeviceKind::kGpu:
      return models::GpuKernelAlone<T>(device, workload, kernel, parameters);
    case DeviceKind::kNeuron:
    case DeviceKind::kSystolic:
    case DeviceKind::kDataflow:
      break;
  }
  throw model::InputError(device.name +
                          ": runs compiled graphs, its model has no times of "
                          "kernels by themselves");
}

}  // namespace trainfare::hardware
