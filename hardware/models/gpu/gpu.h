#pragma once

// GPUs as a kind of device: warps hide latency, tiles fill waves, the host
// launches ahead.
//
// A matrix product is cut into tiles that run on the streaming multiprocessors
// (SMs) in waves; the last wave may be part empty (tiling.h), and by precision
// and shape it gets more or less of the engines (rates.h). What of a kernel
// hides the rest is in kernel_time.h, what waits for the host in step.h.
// docs/models/gpu.md works each formula by hand.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/models/gpu/kernel_time.h"
#include "hardware/models/gpu/parameters.h"
#include "hardware/models/gpu/power.h"
#include "hardware/models/gpu/rates.h"
#include "hardware/models/gpu/step.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
#include "model/kernels.h"
#include "model/stack_rules.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// The parameters that GpuStep can take of such a step: all but those of other
// engines and of launches unlike its own.
inline ParameterSet GpuParametersOfStep(const Device& device,
                                        const model::Workload& workload) {
  ParameterSet set = ParameterSet().set();
  for (const GpuParameter efficiency : {kGpuGemmEfficiencyFp32,
                                        kGpuGemmEfficiencyTf32,
                                        kGpuGemmEfficiencyHalf}) {
    set.reset(efficiency);
  }
  const GpuKernelRates rates(device, workload);
  set.set(rates.others().efficiency);
  set.set(rates.narrow().efficiency);
  set.set(rates.update().efficiency);
  set.set(rates.attention().efficiency);
  const model::StackRules& stack = model::RulesOf(workload);
  set.set(kGpuLibraryLaunchShare,
          stack.launches == model::Launches::kByLibrary);
  set.set(kGpuCompiledLaunchShare, stack.launches == model::Launches::kByGraph);
  set.set(kGpuCompiledEfficiency, stack.slower_kernels);
  set.set(kGpuChunkGemmRatio, workload.architecture.other_mixers() > 0);
  return set;
}

// Launches bound the smallest of these runs, matrix products the largest.
inline constexpr std::array<std::string_view, 2> kGpuRunModels = {
    "bert-base-uncased", "bert-large-uncased"};
inline constexpr std::array<model::Fusion, 2> kGpuRunStacks = {
    model::Fusion::kEager, model::Fusion::kFused};
inline constexpr std::array<int64_t, 5> kGpuRunLengths = {
    32, 64, 128, 256, 512};
inline constexpr std::array<int64_t, 7> kGpuRunBatches = {
    4, 8, 16, 32, 64, 128, 256};
inline constexpr RunGrid kGpuRuns{
    .models = kGpuRunModels,
    .stacks = kGpuRunStacks,
    .lengths = kGpuRunLengths,
    .batches = kGpuRunBatches,
    // The driver, the libraries and the allocator's gaps have the rest
    // (docs/models/memory.md).
    .memory_share = 0.85};

// The kind's row, and its formulas by the names that all kinds share.
struct GpuKind {
  static constexpr Kind kRow{.parameters = kGpuParameters,
                             .parameter_alone = kGpuKernelOverhead,
                             .parameters_of_step = GpuParametersOfStep,
                             .trainer_device = "cuda",
                             .runs = &kGpuRuns,
                             .few_bits = true,
                             .other_mixers = true,
                             .power = PowerLevelsOf};

  template <class T>
  static StepTime<T> Step(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p) {
    return GpuStep<T>(device, workload, kernels, p);
  }
  template <class T>
  static model::Seconds<T> KernelAlone(const Device& device,
                                       const model::Workload& workload,
                                       model::Phase /*phase*/,
                                       const model::Kernel& kernel,
                                       std::span<const T> p) {
    return GpuKernelAlone<T>(device, workload, kernel, p);
  }
};

}  // namespace trainfare::hardware::models
