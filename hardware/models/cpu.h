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

#include "hardware/catalog/device.h"
#include "hardware/models/kind.h"
#include "hardware/models/parameter.h"
#include "hardware/models/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"

namespace trainfare::hardware::models {

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

// Priors: what LibTorch with oneDNN and MKL reaches on server processors of
// 2018 - 2025, wide where processors differ.
inline constexpr std::array<ParameterInfo, kCpuParameterCount> kCpuParameters =
    {{{.name = "gemm_efficiency",
       .unit = "1",
       .meaning = "share of peak that large fp32 products reach",
       .transform = Transform::kLog,
       .prior = 0.7,
       .prior_sigma = 0.4,
       .lower = 0.02,
       .upper = 2.0,
       .determined_by =
           "a step of many tokens (batch x length of 1024 or more)"},
      {.name = "gemm_half_extent",
       .unit = "1",
       .meaning = "smallest extent of a product at which half of that share is "
                  "reached",
       .transform = Transform::kLog,
       .prior = 4.0,
       .prior_sigma = 1.2,
       .lower = 0.01,
       .upper = 500.0,
       .determined_by = "steps of few tokens (batch x length below 64)"},
      {.name = "backward_gemm_ratio",
       .unit = "1",
       .meaning =
           "efficiency of the backward pass's products over the forward's",
       .transform = Transform::kLog,
       .prior = 0.9,
       .prior_sigma = 0.15,
       .lower = 0.2,
       .upper = 2.0,
       .determined_by = "a step of many tokens, its passes timed apart"},
      {.name = "narrow_gemm_ratio",
       .unit = "1",
       .meaning = "share of the bf16 or fp16 peak reached, over that of fp32",
       .transform = Transform::kLog,
       .prior = 0.6,
       .prior_sigma = 0.5,
       .lower = 0.01,
       .upper = 2.0,
       .determined_by = "a step in bf16"},
      {.name = "batched_gemm_ratio",
       .unit = "1",
       .meaning =
           "efficiency of attention's small products over that of large ones",
       .transform = Transform::kLog,
       .prior = 0.5,
       .prior_sigma = 0.5,
       .lower = 0.02,
       .upper = 1.5,
       .determined_by = "a step of long sequences (512) in a small batch"},
      {.name = "vector_efficiency",
       .unit = "1",
       .meaning = "share of the vector peak in elementwise work",
       .transform = Transform::kLog,
       .prior = 0.4,
       .prior_sigma = 0.7,
       .lower = 0.002,
       .upper = 1.5,
       .determined_by = "a step of long sequences (512) in a small batch"},
      {.name = "bandwidth_efficiency",
       .unit = "1",
       .meaning = "share of the memory bandwidth that streams reach",
       .transform = Transform::kLog,
       .prior = 2.5,
       .prior_sigma = 0.8,
       .lower = 0.02,
       .upper = 20.0,
       .determined_by = "the optimizer step of a large model"},
      {.name = "weight_bandwidth_ratio",
       .unit = "1",
       .meaning = "bandwidth at which a product reads and packs its weights, "
                  "over that "
                  "of streams",
       .transform = Transform::kLog,
       .prior = 0.25,
       .prior_sigma = 0.6,
       .lower = 0.01,
       .upper = 2.0,
       .determined_by = "a step of a large model with few tokens"},
      {.name = "cache_speedup",
       .unit = "1",
       .meaning = "bandwidth of the last-level cache over that of memory",
       .transform = Transform::kLog,
       .prior = 1.0,
       .prior_sigma = 0.5,
       .lower = 0.2,
       .upper = 50.0,
       .determined_by = "a step whose activations fit in the cache"},
      {.name = "overlap",
       .unit = "1",
       .meaning = "share of the shorter of compute and memory hidden",
       .transform = Transform::kLinear,
       .prior = 0.3,
       .prior_sigma = 0.25,
       .lower = 0.0,
       .upper = 1.0,
       .determined_by = "steps on both sides of the ridge point"},
      {.name = "kernel_overhead",
       .unit = "s",
       .meaning = "fixed cost of one operation",
       .transform = Transform::kLog,
       .prior = 8e-6,
       .prior_sigma = 0.7,
       .lower = 1e-7,
       .upper = 1e-3,
       .determined_by = "a step of a small model (bert-tiny) with few tokens"},
      {.name = "random_draw",
       .unit = "s",
       .meaning = "time of one random number of a dropout mask, all "
                  "cores together",
       .transform = Transform::kLog,
       .prior = 0.7e-9,
       .prior_sigma = 0.7,
       .lower = 1e-12,
       .upper = 1e-6,
       .determined_by = "a step of long sequences (512) with dropout"},
      {.name = "step_overhead",
       .unit = "s",
       .meaning = "work of a step outside its three phases",
       .transform = Transform::kLog,
       .prior = 1e-3,
       .prior_sigma = 1.0,
       .lower = 1e-6,
       .upper = 1.0,
       .determined_by =
           "a step of a small model (bert-tiny) with few tokens"}}};

// A transcendental function costs about as much as this many multiply-adds
// lanes in a polynomial of its vectorised form (Sleef's expf, erff: 20 - 30).
inline constexpr double kCpuFlopsPerSpecialOp = 25.0;

// Share of the peak that a product of limited extents reaches: packing its
// operands costs once what the smallest extent has to pay back.
//
//   q = d / (d + d_half)        d = min(m, n, k)
template <class T>
T CpuGemmExtentShare(const model::GemmExtents& g, T half_extent) {
  const auto smallest = static_cast<double>(std::min({g.m, g.n, g.k}));
  return T(smallest) / (T(smallest) + half_extent);
}

template <class T>
model::ExposedTime<T> CpuKernelTime(const Device& device,
                                    model::FlopsPerSecond<> matrix_peak,
                                    bool narrow,
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
    if (narrow) efficiency *= p[kCpuNarrowGemmRatio];
    efficiency *= CpuGemmExtentShare<T>(kernel.gemm, p[kCpuGemmHalfExtent]);
    if (kernel.kind != KernelKind::kGemm) efficiency *= p[kCpuBatchedGemmRatio];
    if (phase == model::Phase::kBackward) {
      efficiency *= p[kCpuBackwardGemmRatio];
    }
    compute += flops(kernel.matrix_flops) / (matrix_peak * efficiency);
  }
  const double vector_flops =
      static_cast<double>(kernel.vector_flops) +
      kCpuFlopsPerSpecialOp * static_cast<double>(kernel.special_ops);
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
  const auto peak = device.MatrixPeak(workload.precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  const bool narrow = model::BytesPerElement(workload.precision) < 4;
  return CpuKernelTime<T>(device, *peak, narrow, phase, kernel, p).total() *
         static_cast<double>(kernel.launches);
}

template <class T>
StepTime<T> CpuStep(const Device& device,
                    const model::Workload& workload,
                    const model::KernelList& kernels,
                    std::span<const T> p) {
  ENSURE(p.size() == kCpuParameterCount, "parameters of another model");
  const auto peak = device.MatrixPeak(workload.precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  const bool narrow = model::BytesPerElement(workload.precision) < 4;

  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        for (int64_t i = segment.begin; i < segment.end; ++i) {
          const model::Kernel& kernel = kernels.kernels[static_cast<size_t>(i)];
          AddKernel(time,
                    kernel,
                    CpuKernelTime<T>(
                        device, *peak, narrow, segment.phase, kernel, p));
        }
        return time * static_cast<double>(segment.repeat);
      },
      model::Seconds<T>(p[kCpuStepOverhead]));
}

// The kind's row, and its formulas by the names that all kinds share.
struct CpuKind {
  static constexpr Kind kRow{.name = "cpu",
                             .parameters = kCpuParameters,
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
