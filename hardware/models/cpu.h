#pragma once

// Time of a step on a processor: cores with vector units behind caches.
//
// Kernels run one after another, each on all cores. A matrix product runs at a
// share of the peak that grows with its extents; what is not a matrix product
// costs vector arithmetic or memory traffic, of which part comes from the
// last-level cache. docs/models/cpu.md works one kernel by hand.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/muon.h"

namespace trainfare::hardware::models {

// Its free parameters. What is believed of each: hardware/kinds/cpu.yaml.
enum CpuParameter : std::size_t {
  kCpuGemmEfficiency,
  kCpuGemmHalfExtent,
  kCpuBackwardGemmRatio,
  kCpuNarrowGemmRatio,
  kCpuBatchedGemmRatio,
  kCpuVectorEfficiency,
  kCpuBandwidthEfficiency,
  kCpuWeightBandwidthRatio,
  kCpuCacheSpeedup,
  kCpuOverlap,
  kCpuKernelOverhead,
  kCpuRandomDraw,
  kCpuStepOverhead,
  kCpuParameterCount,
};

inline constexpr std::array<std::string_view, kCpuParameterCount>
    kCpuParameters = {"gemm_efficiency",
                      "gemm_half_extent",
                      "backward_gemm_ratio",
                      "narrow_gemm_ratio",
                      "batched_gemm_ratio",
                      "vector_efficiency",
                      "bandwidth_efficiency",
                      "weight_bandwidth_ratio",
                      "cache_speedup",
                      "overlap",
                      "kernel_overhead",
                      "random_draw",
                      "step_overhead"};

// Share of the peak that a product of limited extents reaches: packing its
// operands costs once what the smallest extent has to pay back.
//
//   q = d / (d + d_half)        d = min(m, n, k)
template <class T>
T CpuGemmExtentShare(const model::GemmExtents& g, T half_extent) {
  const auto smallest = static_cast<double>(std::min({g.m, g.n, g.k}));
  return T(smallest) / (T(smallest) + half_extent);
}

// What of a processor and a precision all kernels of a step share.
struct CpuRates {
  CpuRates(const Device& device, model::Precision precision)
      : narrow(model::BytesPerElement(precision) < 4),
        flops_per_special_op(FactsOfProcessors().flops_per_special_op) {
    const auto peak = device.MatrixPeak(precision);
    ENSURE(peak.has_value(), "a precision that the device does not have");
    matrix = *peak;
  }
  model::FlopsPerSecond<> matrix;
  bool narrow;
  double flops_per_special_op;
};

template <class T>
model::ExposedTime<T> CpuKernelTime(const Device& device,
                                    const CpuRates& rates,
                                    model::Phase phase,
                                    const model::Kernel& kernel,
                                    std::span<const T> p) {
  using model::KernelKind;
  const auto flops = [](int64_t count) {
    return model::Flop(static_cast<double>(count));
  };
  const auto bytes = [](int64_t count) {
    return model::Byte(static_cast<double>(count));
  };

  model::Seconds<T> compute;
  if (kernel.matrix_flops > 0) {
    T efficiency = p[kCpuGemmEfficiency];
    if (rates.narrow) efficiency *= p[kCpuNarrowGemmRatio];
    efficiency *= CpuGemmExtentShare<T>(kernel.gemm, p[kCpuGemmHalfExtent]);
    if (kernel.kind != KernelKind::kGemm) efficiency *= p[kCpuBatchedGemmRatio];
    if (phase == model::Phase::kBackward) {
      efficiency *= p[kCpuBackwardGemmRatio];
    }
    compute += flops(kernel.matrix_flops) / (rates.matrix * efficiency);
  }
  const double vector_flops =
      static_cast<double>(kernel.vector_flops) +
      rates.flops_per_special_op * static_cast<double>(kernel.special_ops);
  if (vector_flops > 0) {
    compute += model::Flop(vector_flops) /
               (device.VectorPeak() * p[kCpuVectorEfficiency]);
  }
  compute += model::Seconds<T>(p[kCpuRandomDraw]) *
             static_cast<double>(kernel.random_draws);

  // Bytes of parameters come from memory; the others in part from the cache.
  const model::BytesPerSecond<T> bandwidth =
      device.memory_bandwidth * p[kCpuBandwidthEfficiency];
  const auto activations = bytes(kernel.bytes() - kernel.parameter_bytes);
  const double uncached =
      model::UncachedShare(activations, device.on_chip_memory);
  const T share = T(uncached) + T(1.0 - uncached) / p[kCpuCacheSpeedup];
  model::Seconds<T> memory = (activations / bandwidth) * share;
  // A product packs the weights that it reads; other parameter bytes stream.
  const bool packs = kernel.kind == KernelKind::kGemm;
  const int64_t packed =
      packs ? kernel.parameter_bytes - kernel.parameter_bytes_written : 0;
  memory += bytes(packed) / (bandwidth * p[kCpuWeightBandwidthRatio]);
  memory += bytes(kernel.parameter_bytes - packed) / bandwidth;
  return model::KernelTime<T>(compute,
                              memory,
                              p[kCpuOverlap],
                              model::Seconds<T>(p[kCpuKernelOverhead]));
}

// A kernel by itself, as often as it is launched.
template <class T>
model::Seconds<T> CpuKernelAlone(const Device& device,
                                 const model::Workload& workload,
                                 model::Phase phase,
                                 const model::Kernel& kernel,
                                 std::span<const T> p) {
  ENSURE(p.size() == kCpuParameterCount, "parameters of another model");
  const CpuRates rates(device, model::OperandsOf(kernel, workload.precision));
  return CpuKernelTime<T>(device, rates, phase, kernel, p).total() *
         static_cast<double>(kernel.launches);
}

template <class T>
StepTime<T> CpuStep(const Device& device,
                    const model::Workload& workload,
                    const model::KernelList& kernels,
                    std::span<const T> p) {
  ENSURE(p.size() == kCpuParameterCount, "parameters of another model");
  const CpuRates others(device, workload.precision);
  const CpuRates update = model::MuonNarrows(workload)
                              ? CpuRates(device, model::Precision::kBf16)
                              : others;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        for (const model::Kernel& kernel : kernels.Of(segment)) {
          const CpuRates& rates = kernel.in_bf16 ? update : others;
          AddKernel(time,
                    kernel,
                    CpuKernelTime<T>(device, rates, segment.phase, kernel, p));
        }
        return time * static_cast<double>(segment.repeat);
      },
      model::Seconds<T>(p[kCpuStepOverhead]));
}

// The kind's row, and its formulas by the names that all kinds share.
struct CpuKind {
  static constexpr Kind kRow{.parameters = kCpuParameters,
                             .parameter_alone = kCpuKernelOverhead,
                             .trainer_device = "cpu",
                             .is_host = true};

  template <class T>
  static StepTime<T> Step(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p) {
    return CpuStep<T>(device, workload, kernels, p);
  }
  template <class T>
  static model::Seconds<T> KernelAlone(const Device& device,
                                       const model::Workload& workload,
                                       model::Phase phase,
                                       const model::Kernel& kernel,
                                       std::span<const T> p) {
    return CpuKernelAlone<T>(device, workload, phase, kernel, p);
  }
};

}  // namespace trainfare::hardware::models
