#pragma once

// The V100-PCIE of docs/models/gpu.md, by which its formulas are worked out, and
// BERT-base on it.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {

// Dimensions of a V100-PCIE.
inline Device Volta() {
  Device d;
  d.name = "volta";
  d.kind = DeviceKind::kGpu;
  d.generation = GpuGeneration{model::JoulesPerFlop<>(17.3e-12),
                               0.23,
                               0.117,
                               /*tensor_cores_at_limit=*/true};
  d.other_work_power_share = 0.72;
  d.memory_capacity = model::GiB(16);
  d.memory_bandwidth = model::GBPerSecond(900);
  d.on_chip_memory = model::MiB(6);
  d.peak.fp32 = model::TFlopPerSecond(14);
  d.peak.fp16 = model::TFlopPerSecond(112);
  d.peak.vector = model::TFlopPerSecond(14);
  d.cores = 80;
  d.clock = model::Megahertz(1380);
  d.warps_per_core = 64;
  d.registers_per_core = 65536;
  d.shared_memory_per_core = model::KiB(96);
  return d;
}

inline std::vector<double> Priors() {
  std::vector<double> values;
  for (const ParameterInfo& info : ParametersOf(DeviceKind::kGpu)) {
    values.push_back(info.prior);
  }
  return values;
}

inline model::Workload GpuBert(int64_t batch, int64_t length) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  return w;
}

inline model::Workload In(model::Precision precision) {
  model::Workload w = GpuBert(8, 128);
  w.precision = precision;
  return w;
}

inline StepTime<double> GpuStepOf(const Device& device,
                                  const model::Workload& workload,
                                  const std::vector<double>& values) {
  return GpuStep<double>(
      device, workload, model::ExpandKernels(workload), values);
}

}  // namespace trainfare::hardware::models
