#pragma once

// From kernels to time: the model of each kind of device, and its parameters.
//
// A model is one function template in hardware/models/<kind>.h. Its free
// parameters come as a span in the order of ParametersOf(kind); with T = double
// it simulates, with T = an autodiff scalar it is fitted: one formula, one
// place. Adding a kind: one header there and one row in EstimateStep below.

#include <span>
#include <string_view>

#include "hardware/device.h"
#include "hardware/models/cpu.h"
#include "hardware/models/gpu.h"
#include "hardware/models/neuron.h"
#include "hardware/models/systolic.h"
#include "hardware/parameter.h"
#include "hardware/step_time.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware {

// The free parameters of a kind's model with their priors, in order.
std::span<const ParameterInfo> ParametersOf(DeviceKind kind);

// Throws InputError when the device has no engine for the precision.
void RequirePrecision(const Device& device, model::Precision precision);

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
      break;
  }
  throw model::InputError(std::string(device.name) +
                          ": no step model for this kind of device yet");
}

}  // namespace trainfare::hardware
