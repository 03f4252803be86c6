#pragma once

// Time of a step on a GPU: warps hide latency, tiles fill waves, the host
// launches ahead.
//
// A matrix product is cut into tiles that run on the streaming multiprocessors
// (SMs) in waves; the last wave may be part empty. Memory traffic is hidden
// under arithmetic as far as enough warps are active (Hong & Kim, ISCA 2009),
// and small transfers cannot fill the memory pipe (Little's law). The host
// issues launches into a queue; a device that outruns it waits.
// docs/models.md works one product and one queue by hand.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "hardware/device.h"
#include "hardware/parameter.h"
#include "hardware/step_time.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/launch_queue.h"

namespace trainfare::hardware::models {

enum GpuParameter : std::size_t {
  kGpuGemmEfficiencyFp32,
  kGpuGemmEfficiencyTf32,
  kGpuGemmEfficiencyHalf,
  kGpuBatchedGemmRatio,
  kGpuVectorEfficiency,
  kGpuBandwidthEfficiency,
  kGpuMemoryLatency,
  kGpuWarpsNeeded,
  kGpuKernelOverhead,
  kGpuLaunchCost,
  kGpuStepOverhead,
  kGpuParameterCount,
};

inline constexpr std::array<ParameterInfo, kGpuParameterCount> kGpuParameters =
    {{
        {"gemm_efficiency_fp32",
         "1",
         "share of the fp32 peak that full waves of tiles reach",
         Transform::kLog,
         0.85,
         0.15,
         0.05,
         1.1,
         "a step in fp32, batch 16 or more"},
        {"gemm_efficiency_tf32",
         "1",
         "the same of tf32",
         Transform::kLog,
         0.62,
         0.25,
         0.05,
         1.1,
         "a step in tf32, batch 16 or more"},
        {"gemm_efficiency_half",
         "1",
         "the same of fp16 and bf16",
         Transform::kLog,
         0.6,
         0.25,
         0.05,
         1.1,
         "a step in fp16 or bf16, batch 16 or more"},
        {"batched_gemm_ratio",
         "1",
         "efficiency of attention's small products over that of large ones",
         Transform::kLog,
         0.7,
         0.4,
         0.05,
         1.5,
         "a step of length 512"},
        {"vector_efficiency",
         "1",
         "share of the CUDA-core peak in elementwise work",
         Transform::kLog,
         0.5,
         0.5,
         0.02,
         1.0,
         "a step of length 512"},
        {"bandwidth_efficiency",
         "1",
         "share of the memory bandwidth that long streams reach",
         Transform::kLog,
         0.8,
         0.12,
         0.1,
         1.0,
         "a step with a fused optimizer, or of length 512"},
        {"memory_latency",
         "s",
         "of one transfer from device memory",
         Transform::kLog,
         600e-9,
         0.3,
         1e-7,
         1e-5,
         "steps of batch 1 and of batch 16"},
        {"warps_needed",
         "1",
         "active warps an SM at which all of the shorter is hidden",
         Transform::kLog,
         20.0,
         0.4,
         1.0,
         64.0,
         "steps on both sides of the ridge point"},
        {"kernel_overhead",
         "s",
         "start and drain of one kernel on the device",
         Transform::kLog,
         2.0e-6,
         0.4,
         1e-7,
         1e-4,
         "a step of a small model, compiled or fused"},
        {"launch_cost",
         "s",
         "host time of one launch in an eager framework",
         Transform::kLog,
         7.0e-6,
         0.5,
         5e-7,
         2e-4,
         "an eager step of batch 1"},
        {"step_overhead",
         "s",
         "host work of a step outside its launches",
         Transform::kLog,
         2e-3,
         0.8,
         1e-5,
         0.5,
         "an eager step of batch 1"},
    }};

// Special-function units an SM answer 16 a clock beside 128 lanes of 2 FLOPs.
inline constexpr double kGpuFlopsPerSpecialOp = 16.0;
// Philox-4x32-10: ten rounds for four numbers (Salmon et al., SC 2011).
inline constexpr double kGpuFlopsPerRandomDraw = 20.0;
// Bandwidth of the last-level cache over device memory's (A100: 4.4 - 5.1
// against 1.6 TB/s; V100: 2.2 - 2.7 against 0.9 TB/s).
inline constexpr double kGpuCacheSpeedup = 2.7;
// Host cost of a launch relative to an eager framework's: hand-fused layers
// launch from C++, compiled graphs replay.
inline constexpr double kGpuFusedLaunchShare = 0.6;
inline constexpr double kGpuCompiledLaunchShare = 0.25;
// Bytes that one thread keeps under way: a 16-byte vector load.
inline constexpr double kGpuBytesPerThread = 16.0;
inline constexpr int64_t kGpuThreadsPerWarp = 32;

// A tile of C that one thread block computes.
struct GemmTile {
  int64_t rows;
  int64_t columns;
  // Small tiles load more operands a FLOP and reach less of the peak.
  double relative_rate;
  int64_t warps;
};
inline constexpr std::array kGemmTiles = {GemmTile{256, 128, 1.00, 8},
                                          GemmTile{128, 128, 0.97, 8},
                                          GemmTile{128, 64, 0.85, 4},
                                          GemmTile{64, 64, 0.70, 4},
                                          GemmTile{32, 64, 0.45, 4}};
// Depth of k over which a tile's pipeline fills and its result drains.
inline constexpr double kGemmPipelineDepth = 48.0;
// A tile's k may be split over blocks down to this depth.
inline constexpr int64_t kGemmSplitDepth = 512;

// Share of the peak that a product reaches when cut into tiles that run on
// `cores` SMs in waves: useful work over work scheduled.
//
//   q = max over tiles of  r k/(k + d) m n b / (ceil(tiles s / SMs) SMs A / s)
//
//   tiles = b ceil(m / rows) ceil(n / columns), A = rows columns, r the tile's
//   relative rate, d the pipeline depth, s the number of splits of k
struct TileChoice {
  double share;
  double active_warps;  // an SM
};
inline TileChoice ChooseTile(const model::GemmExtents& g, int64_t cores) {
  TileChoice best{0.0, 1.0};
  const auto ceil_divide = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const auto useful = static_cast<double>(g.batch) * static_cast<double>(g.m) *
                      static_cast<double>(g.n);
  for (const GemmTile& tile : kGemmTiles) {
    const int64_t tiles =
        g.batch * ceil_divide(g.m, tile.rows) * ceil_divide(g.n, tile.columns);
    int64_t splits = 1;
    if (tiles < cores) {
      splits = std::clamp<int64_t>(
          std::min(cores / tiles, g.k / kGemmSplitDepth), 1, 16);
    }
    const int64_t waves = ceil_divide(tiles * splits, cores);
    const double scheduled = static_cast<double>(waves * cores) *
                             static_cast<double>(tile.rows * tile.columns) /
                             static_cast<double>(splits);
    const double depth = static_cast<double>(g.k) / static_cast<double>(splits);
    const double share = tile.relative_rate * (useful / scheduled) *
                         (depth / (depth + kGemmPipelineDepth));
    if (share > best.share) {
      const double blocks_per_core = std::min(
          2.0,
          static_cast<double>(tiles * splits) / static_cast<double>(cores));
      best = {share,
              std::max(1.0, blocks_per_core * static_cast<double>(tile.warps))};
    }
  }
  return best;
}

template <class T>
model::ExposedTime<T> GpuKernelTime(const Device& device,
                                    const model::Workload& workload,
                                    model::FlopsPerSecond<> matrix_peak,
                                    const model::Kernel& kernel,
                                    std::span<const T> p) {
  using model::KernelKind;
  double active_warps = 0;
  model::Seconds<T> compute;
  if (kernel.matrix_flops > 0) {
    T efficiency = p[kGpuGemmEfficiencyHalf];
    if (workload.precision == model::Precision::kFp32) {
      efficiency = p[kGpuGemmEfficiencyFp32];
    } else if (workload.precision == model::Precision::kTf32) {
      efficiency = p[kGpuGemmEfficiencyTf32];
    }
    const TileChoice choice = ChooseTile(kernel.gemm, device.cores);
    active_warps = choice.active_warps;
    efficiency *= choice.share;
    if (kernel.kind != KernelKind::kGemm) efficiency *= p[kGpuBatchedGemmRatio];
    compute += model::Flop(static_cast<double>(kernel.matrix_flops)) /
               (matrix_peak * efficiency);
  } else {
    const double threads = static_cast<double>(kernel.work_items);
    active_warps = std::clamp(
        threads / static_cast<double>(kGpuThreadsPerWarp * device.cores),
        1.0,
        static_cast<double>(device.warps_per_core));
  }
  const double vector_flops =
      static_cast<double>(kernel.vector_flops) +
      kGpuFlopsPerSpecialOp * static_cast<double>(kernel.special_ops) +
      kGpuFlopsPerRandomDraw * static_cast<double>(kernel.random_draws);
  if (vector_flops > 0) {
    compute += model::Flop(vector_flops) /
               (device.VectorPeak() * p[kGpuVectorEfficiency]);
  }

  const auto bytes = [](int64_t count) {
    return model::Byte(static_cast<double>(count));
  };
  const double in_flight =
      std::min(static_cast<double>(kernel.bytes()),
               static_cast<double>(device.cores * device.warps_per_core *
                                   kGpuThreadsPerWarp) *
                   kGpuBytesPerThread);
  const model::BytesPerSecond<T> peak_bandwidth(
      T(device.memory_bandwidth.base()));
  const T bound =
      model::LatencyBoundShare<T>(model::Byte(in_flight),
                                  peak_bandwidth,
                                  model::Seconds<T>(p[kGpuMemoryLatency]));
  const auto activations = bytes(kernel.bytes() - kernel.parameter_bytes);
  const double uncached =
      model::UncachedShare(activations, device.on_chip_memory);
  const double share = uncached + (1.0 - uncached) / kGpuCacheSpeedup;
  const model::Seconds<T> memory =
      (bytes(kernel.parameter_bytes) + activations * share) /
      (peak_bandwidth * (p[kGpuBandwidthEfficiency] * bound));

  T overlap = T(active_warps) / p[kGpuWarpsNeeded];
  if (overlap > T(1.0)) overlap = T(1.0);
  return model::KernelTime<T>(
      compute, memory, overlap, model::Seconds<T>(p[kGpuKernelOverhead]));
}

template <class T>
StepTime<T> GpuStep(const Device& device,
                    const model::Workload& workload,
                    const model::KernelList& kernels,
                    std::span<const T> p) {
  ENSURE(p.size() == kGpuParameterCount, "parameters of another model");
  const auto peak = device.MatrixPeak(workload.precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  double launch_share = 1.0;
  if (workload.stack.fusion == model::Fusion::kFused) {
    launch_share = kGpuFusedLaunchShare;
  } else if (workload.stack.fusion == model::Fusion::kCompiled) {
    launch_share = kGpuCompiledLaunchShare;
  }
  const model::Seconds<T> launch(p[kGpuLaunchCost] * launch_share);

  // The two clocks run on through the phases of a step; what a phase waits
  // for the host is its overhead.
  model::LaunchQueue<T> queue;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        model::LaunchMap<T> map;
        for (int64_t i = segment.begin; i < segment.end; ++i) {
          const model::Kernel& kernel = kernels.kernels[static_cast<size_t>(i)];
          const auto exposed =
              GpuKernelTime<T>(device, workload, *peak, kernel, p);
          AddKernel(time, kernel, exposed);
          map = map.Then(model::OneLaunch<T>(launch, exposed.total())
                             .Repeated(kernel.launches));
        }
        time = time * static_cast<double>(segment.repeat);
        const model::Seconds<T> before = queue.ready;
        queue.Apply(map.Repeated(segment.repeat));
        const model::Seconds<T> waited = (queue.ready - before) - time.total();
        time.overhead += waited;
        return time;
      },
      model::Seconds<T>(p[kGpuStepOverhead]));
}

}  // namespace trainfare::hardware::models
