#pragma once

// Time of a step on a chip with systolic matrix arrays and a graph compiler
// (TPU, Gaudi): products padded to the array, elementwise work fused.
//
// The compiler fuses whatever it is given. A stack that is compiled as a whole
// (TensorFlow, JAX) asks the host for little; one that is written operation by
// operation (PyTorch/XLA: an eager list of kernels) is traced anew every step,
// and its elementwise operations and copies ride along with their neighbours.
// The cores of a chip are data parallel: each takes its share of the batch and
// of the bandwidth. docs/models/tpu.md works one product by hand.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/models/compiled_graph.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/stack_rules.h"

namespace trainfare::hardware::models {

// Its free parameters. What is believed of each: hardware/kinds/systolic.yaml.
enum SystolicParameter : std::size_t {
  kSystolicGemmEfficiency,
  kSystolicVectorEfficiency,
  kSystolicBandwidthEfficiency,
  kSystolicOverlap,
  kSystolicKernelOverhead,
  kSystolicTraceCost,
  kSystolicStepOverhead,
  kSystolicParameterCount,
};

inline constexpr std::array<std::string_view, kSystolicParameterCount>
    kSystolicParameters = {"gemm_efficiency",
                           "vector_efficiency",
                           "bandwidth_efficiency",
                           "overlap",
                           "kernel_overhead",
                           "trace_cost",
                           "step_overhead"};

// Whether an operation costs memory traffic of its own: the compiler fuses
// the elementwise operations and copies of an eager list into their neighbours.
inline bool HasOwnTraffic(const model::Workload& workload,
                          const model::Kernel& kernel) {
  return !model::OperationByOperation(workload.stack) ||
         (kernel.kind != model::KernelKind::kElementwise &&
          kernel.kind != model::KernelKind::kCopy);
}

// One kernel on every core that has a share of the batch.
template <class T>
model::ExposedTime<T> SystolicKernelTime(const Device& device,
                                         const model::Workload& workload,
                                         const model::Kernel& kernel,
                                         model::Phase phase,
                                         std::span<const T> p) {
  const auto peak = MatrixPeakOf(device, workload, kernel);
  const auto of_chip = static_cast<double>(device.cores);
  T fixed = p[kSystolicKernelOverhead];
  if (model::OperationByOperation(workload.stack)) {
    fixed += p[kSystolicTraceCost];
  }
  const double share = ShareOfBusiestCore(device, workload, phase);
  model::Seconds<T> compute;
  if (kernel.matrix_flops > 0) {
    const double array = SystolicShare(
        kernel.gemm, device.systolic_rows, device.systolic_columns);
    compute += model::Flop(static_cast<double>(kernel.matrix_flops) * share *
                           of_chip) /
               (peak * (p[kSystolicGemmEfficiency] * array));
  }
  compute += model::Flop(static_cast<double>(kernel.vector_flops +
                                             8 * kernel.special_ops +
                                             8 * kernel.random_draws) *
                         share * of_chip) /
             (device.VectorPeak() * p[kSystolicVectorEfficiency]);
  double bytes = 0;
  if (kernel.kind == model::KernelKind::kOptimizer) {
    bytes = FusedOptimizerBytes(workload, kernel);
  } else if (HasOwnTraffic(workload, kernel)) {
    bytes =
        static_cast<double>(kernel.parameter_bytes) +
        static_cast<double>(kernel.bytes() - kernel.parameter_bytes) * share;
  }
  const model::BytesPerSecond<T> bandwidth =
      device.memory_bandwidth * (p[kSystolicBandwidthEfficiency] / of_chip);
  return model::KernelTime<T>(compute,
                              model::Byte(bytes) / bandwidth,
                              p[kSystolicOverlap],
                              model::Seconds<T>(fixed));
}

// What one backward pass of a block computes anew of its forward pass for want
// of memory (memory_plan.h), in `share` of the blocks: the product that makes
// the scores, one of attention's two. What is elementwise rides along.
template <class T>
PhaseTime<T> SystolicRecomputation(const Device& device,
                                   const model::Workload& workload,
                                   const model::KernelList& kernels,
                                   const model::Segment& backward,
                                   double share,
                                   std::span<const T> p) {
  PhaseTime<T> time;
  for (const model::Segment& segment : kernels.segments) {
    if (segment.phase != model::Phase::kForward ||
        segment.role != backward.role) {
      continue;
    }
    for (const model::Kernel& kernel : kernels.Of(segment)) {
      if (kernel.kind != model::KernelKind::kBatchedGemm) continue;
      AddKernel(
          time,
          kernel,
          SystolicKernelTime<T>(device, workload, kernel, segment.phase, p));
    }
  }
  return time * (0.5 * share);
}

template <class T>
StepTime<T> SystolicStep(const Device& device,
                         const model::Workload& workload,
                         const model::KernelList& kernels,
                         std::span<const T> p) {
  ENSURE(p.size() == kSystolicParameterCount, "parameters of another model");
  const double anew = PlanMemory(device, workload).anew;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        for (const model::Kernel& listed : kernels.Of(segment)) {
          if (CastInProduct(workload, listed)) continue;
          const model::Kernel kernel = AsCompiled(workload, listed);
          AddKernel(time,
                    kernel,
                    SystolicKernelTime<T>(
                        device, workload, kernel, segment.phase, p));
        }
        const bool block = segment.role == model::SegmentRole::kLayer ||
                           segment.role == model::SegmentRole::kDecoderLayer;
        if (block && segment.phase == model::Phase::kBackward && anew > 0) {
          time += SystolicRecomputation<T>(
              device, workload, kernels, segment, anew, p);
        }
        return time * static_cast<double>(segment.repeat);
      },
      model::Seconds<T>(p[kSystolicStepOverhead]));
}

// The kind's row, and its formula by the name that all kinds share.
struct SystolicKind {
  static constexpr Kind kRow{.parameters = kSystolicParameters,
                             .compiles_graphs = true,
                             .plan_memory = PlanRecomputingMemory};

  template <class T>
  static StepTime<T> Step(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p) {
    return SystolicStep<T>(device, workload, kernels, p);
  }
};

}  // namespace trainfare::hardware::models
