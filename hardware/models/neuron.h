#pragma once

// Time of a step on a NeuronCore (Trainium, Inferentia): transfers and engines
// take turns.
//
// A NeuronCore does not switch between warps, so DMA time adds to engine time
// (w = 0), and on one chain of operations the tensor, vector and scalar engines
// add up. The cores of a chip are data parallel: each takes its share of the
// batch and of the bandwidth. Graphs are compiled: stacks are kCompiled
// whatever is asked. docs/models.md works one kernel by hand.

#include <array>
#include <cstddef>
#include <span>

#include "hardware/device.h"
#include "hardware/parameter.h"
#include "hardware/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"

namespace trainfare::hardware::models {

enum NeuronParameter : std::size_t {
  kNeuronTensorEfficiency,
  kNeuronVectorEfficiency,
  kNeuronScalarOp,
  kNeuronDmaEfficiency,
  kNeuronSpillShare,
  kNeuronKernelOverhead,
  kNeuronStepOverhead,
  kNeuronParameterCount,
};

inline constexpr std::array<ParameterInfo, kNeuronParameterCount>
    kNeuronParameters = {{
        {"tensor_efficiency",
         "1",
         "share of the tensor engine's peak on full tiles",
         Transform::kLog,
         0.5,
         0.3,
         0.02,
         1.0,
         "a step of many tokens"},
        {"vector_efficiency",
         "1",
         "share of the vector engine's peak",
         Transform::kLog,
         0.3,
         0.5,
         0.01,
         1.0,
         "a step of length 512"},
        {"scalar_op",
         "s",
         "time of one function evaluation, one core",
         Transform::kLog,
         8e-12,
         0.5,
         1e-13,
         1e-9,
         "a step of length 512"},
        {"dma_efficiency",
         "1",
         "share of the HBM bandwidth that DMA reaches",
         Transform::kLog,
         0.6,
         0.3,
         0.02,
         1.0,
         "a step of few tokens"},
        {"spill_share",
         "1",
         "extra transfers of a live byte that does not fit on chip",
         Transform::kLog,
         1.0,
         0.5,
         0.01,
         10.0,
         "steps below and above the on-chip memory"},
        {"kernel_overhead",
         "s",
         "fixed cost of one fused operation",
         Transform::kLog,
         5e-6,
         0.6,
         1e-7,
         1e-3,
         "a step of few tokens"},
        {"step_overhead",
         "s",
         "host and runtime work of a step",
         Transform::kLog,
         8e-3,
         0.7,
         1e-5,
         0.5,
         "a step of few tokens"},
    }};

// Rows and columns of the tensor engine's array that a product fills: m, n and
// k are padded to its sides.
inline double SystolicShare(const model::GemmExtents& g,
                            int64_t rows,
                            int64_t columns) {
  if (rows <= 0 || columns <= 0) return 1.0;
  const auto padded = [](int64_t value, int64_t side) {
    return static_cast<double>((value + side - 1) / side * side);
  };
  return static_cast<double>(g.k) / padded(g.k, rows) *
         (static_cast<double>(g.n) / padded(g.n, columns));
}

template <class T>
StepTime<T> NeuronStep(const Device& device,
                       const model::Workload& workload,
                       const model::KernelList& kernels,
                       std::span<const T> p) {
  ENSURE(p.size() == kNeuronParameterCount, "parameters of another model");
  const auto peak = device.MatrixPeak(workload.precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  // Cores in use share the batch; parameters are every core's own work.
  const auto cores =
      static_cast<double>(std::min(device.cores, workload.batch));
  const auto of_chip = static_cast<double>(device.cores);

  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        for (int64_t i = segment.begin; i < segment.end; ++i) {
          const model::Kernel& kernel = kernels.kernels[static_cast<size_t>(i)];
          // The optimizer runs whole on every core.
          const double share =
              kernel.kind == model::KernelKind::kOptimizer ? 1.0 : 1.0 / cores;
          model::Seconds<T> compute;
          if (kernel.matrix_flops > 0) {
            const double array = SystolicShare(
                kernel.gemm, device.systolic_rows, device.systolic_columns);
            compute += model::Flop(static_cast<double>(kernel.matrix_flops) *
                                   share * of_chip) /
                       (*peak * (p[kNeuronTensorEfficiency] * array));
          }
          compute += model::Flop(static_cast<double>(kernel.vector_flops +
                                                     kernel.random_draws) *
                                 share * of_chip) /
                     (device.VectorPeak() * p[kNeuronVectorEfficiency]);
          compute += model::Seconds<T>(p[kNeuronScalarOp]) *
                     (static_cast<double>(kernel.special_ops) * share);
          const auto own_bytes = static_cast<double>(kernel.parameter_bytes);
          const auto shared_bytes =
              static_cast<double>(kernel.bytes() - kernel.parameter_bytes) *
              share;
          const model::BytesPerSecond<T> bandwidth =
              device.memory_bandwidth * (p[kNeuronDmaEfficiency] / of_chip);
          const model::Seconds<T> memory =
              model::Byte(own_bytes + shared_bytes) / bandwidth;
          AddKernel(time,
                    kernel,
                    model::KernelTime<T>(
                        compute,
                        memory,
                        T(0.0),
                        model::Seconds<T>(p[kNeuronKernelOverhead])));
          // What is live past a core's on-chip memory goes out and comes back.
          const double live =
              shared_bytes + own_bytes - device.on_chip_memory.base() / of_chip;
          if (live > 0 && kernel.kind != model::KernelKind::kOptimizer) {
            time.spill +=
                (model::Byte(live) / bandwidth) * p[kNeuronSpillShare];
          }
        }
        return time * static_cast<double>(segment.repeat);
      },
      model::Seconds<T>(p[kNeuronStepOverhead]));
}

}  // namespace trainfare::hardware::models
