#pragma once

// What the kernels of a step get of a GPU's matrix engines: by precision, by
// where rows of matrices start, and by what attention in one kernel waits for.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hardware/catalog/device.h"
#include "hardware/catalog/gpu_generation.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/parameters.h"
#include "hardware/models/gpu/power.h"
#include "hardware/models/gpu/tiling.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/muon.h"
#include "model/stack_rules.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// How far apart rows of a product's matrices start: at multiples of 16 bytes,
// which tensor cores read at their full rate, of 4 or 8, or of less.
enum class RowAlignment { kFull, kEven, kOdd };
inline constexpr size_t kRowAlignments = 3;

// Rows lie along the sides that are no batch of tokens: inputs and outputs of a
// layer, keys and heads of attention.
inline RowAlignment AlignmentOf(const model::Kernel& kernel,
                                double element_bytes) {
  const model::GemmExtents& g = kernel.gemm;
  int64_t sides = g.n;  // their common powers of two
  if (kernel.parameter_bytes_written > 0) {
    sides |= g.m;  // a weight gradient sums over tokens
  } else {
    sides |= g.k;
    // Of attention's products some are transposed.
    if (g.batch > 1 && kernel.parameter_bytes == 0) sides |= g.m;
  }
  const double bytes = static_cast<double>(sides & -sides) * element_bytes;
  if (!(bytes < 16.0)) return RowAlignment::kFull;
  return bytes < 4.0 ? RowAlignment::kOdd : RowAlignment::kEven;
}

// What of a device and a precision all kernels of a step share.
struct GpuRates {
  GpuEngine engine = GpuEngine::kLanes;
  double element_bytes = 4.0;
  model::FlopsPerSecond<> matrix;  // of the engine at its full clock
  GpuParameter efficiency = kGpuGemmEfficiencyFp32;
  double usual_efficiency = 1.0;  // before any run
  ClockWithinLimit clock;
  model::FlopsPerSecond<> reach;  // of long products at the full clock
  // Shares of the engine's rate that attention takes, forward and backward.
  double attention = 1.0;
  double attention_backward = 1.0;
  // Share that instructions have for which a warp waits, as in Triton's kernels
  // of products over chunks.
  double synchronous = 1.0;
  // Of its products and other work the share of the shorter that is not hidden.
  double exposed_overlap = 1.0;
  // The most that an engine reaches by the alignment of rows; nothing where all
  // are as fast: off tensor cores, and where the stack pads.
  std::optional<std::array<double, kRowAlignments>> most;
  GemmTiles tiles;
};

// Bytes of a number that a product reads.
inline double OperandWidth(model::Precision precision) {
  constexpr int64_t kMany = 1024;
  return static_cast<double>(model::NarrowsOperands(precision)
                                 ? model::OperandBytes(precision, kMany)
                                 : kMany * model::BytesPerElement(precision)) /
         static_cast<double>(kMany);
}

inline GpuRates RatesOf(const Device& device,
                        model::Precision precision,
                        bool pads_products) {
  const auto peak = device.MatrixPeak(precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  GpuRates rates;
  rates.engine = EngineOf(device, precision);
  rates.element_bytes = OperandWidth(precision);
  rates.matrix = *peak;
  if (rates.engine == GpuEngine::kLanes) {
    rates.matrix = rates.matrix * IssueShare(device);
  }
  rates.reach = rates.matrix * FactsOf(rates.engine).reach;
  rates.clock = ClockWithinLimit(device, precision, *peak);
  if (precision == model::Precision::kTf32) {
    rates.efficiency = kGpuGemmEfficiencyTf32;
  } else if (precision != model::Precision::kFp32) {
    rates.efficiency = kGpuGemmEfficiencyHalf;
  }
  rates.usual_efficiency = UsualOf(rates.efficiency);
  if (device.generation) rates.synchronous = device.generation->synchronous;
  if (rates.engine == GpuEngine::kTensorCores && device.generation &&
      !pads_products) {
    // Numbers of 4 bytes take tensor cores twice as long.
    const double clocks = static_cast<double>(device.cores) *
                          device.clock.base() * 2.0 / rates.element_bytes;
    rates.most = {peak->base(),
                  clocks * FactsOfGpus().flops_of_even_rows,
                  clocks * FactsOfGpus().flops_of_odd_rows};
  }
  rates.tiles =
      GemmTiles(device, rates.engine, rates.matrix.base(), rates.element_bytes);
  return rates;
}

// Whether a warp waits for each product of attention in one kernel, as in
// FlashAttention-1 and -2, and in all before Hopper.
inline bool AttentionWaits(const GpuGeneration& generation,
                           const model::Workload& workload) {
  if (!(generation.synchronous < 1.0)) return true;
  switch (workload.stack.attention) {
    case model::Attention::kFlash1:
    case model::Attention::kFlash2:
      return true;
    case model::Attention::kFlash:
      return model::RulesOf(workload).synchronous_attention &&
             !generation.asynchronous_library;
    case model::Attention::kFlash3:
    case model::Attention::kMaterialised:
      break;
  }
  return false;
}

// The rates of a workload's kernels: products of 8 or 4 bits have their own,
// those of an update in bf16 beside a wider step, and attention in one kernel
// in tf32: LibTorch's flash attention takes 16 bits alone, and what takes its
// place in fp32 and tf32 alike multiplies on the lanes (its memory-efficient
// attention; measured: docs/results/h200.md).
class GpuKernelRates {
 public:
  GpuKernelRates(const Device& device, const model::Workload& workload)
      : others_(RatesOf(device,
                        model::OutsideBlockProducts(workload.precision),
                        model::RulesOf(workload).pads_products)),
        // Libraries of 8 and 4 bits refuse rows that are not aligned.
        narrow_(model::NarrowsOperands(workload.precision)
                    ? RatesOf(device, workload.precision, true)
                    : others_),
        update_(model::MuonNarrows(workload)
                    ? RatesOf(device,
                              model::Precision::kBf16,
                              model::RulesOf(workload).pads_products)
                    : others_) {
    const bool of_libtorch = model::RulesOf(workload).synchronous_attention;
    const bool waits =
        device.generation && AttentionWaits(*device.generation, workload);
    if (waits) {
      others_.attention = device.generation->synchronous;
    } else if (device.generation) {
      others_.exposed_overlap = device.generation->exposed_overlap;
    }
    if (workload.stack.attention == model::Attention::kFlash1) {
      others_.attention *= FactsOfGpus().flash_1_share;
    }
    others_.attention_backward = others_.attention;
    if (waits) others_.attention_backward *= FactsOfGpus().waiting_backward;
    attention_ = of_libtorch && workload.precision == model::Precision::kTf32 &&
                         device.peak.fp32
                     ? RatesOf(device, model::Precision::kFp32, true)
                     : others_;
  }
  // Of one thing for each of the four, that which a kernel goes by.
  template <class Each>
  static Each& Among(const model::Kernel& kernel,
                     Each& others,
                     Each& narrow,
                     Each& update,
                     Each& attention) {
    if (kernel.narrow_operands) return narrow;
    if (kernel.in_bf16) return update;
    return kernel.kind == model::KernelKind::kAttention ? attention : others;
  }
  const GpuRates& Of(const model::Kernel& kernel) const {
    return Among(kernel, others_, narrow_, update_, attention_);
  }
  const GpuRates& others() const { return others_; }
  const GpuRates& narrow() const { return narrow_; }
  const GpuRates& update() const { return update_; }
  const GpuRates& attention() const { return attention_; }

 private:
  GpuRates others_;
  GpuRates narrow_;
  GpuRates update_;
  GpuRates attention_;
};

// Attention in one kernel on tensor cores: queries, scores and probabilities
// stay in registers and shared memory, so that neither the last-level cache
// holds the products back nor memory the softmax (Dao 2023, arXiv 2307.08691,
// section 3; its figures 4 to 6, A100, causal, heads of 128, 4096 tokens: about
// 180 TFLOP/s forward, 150 backward; the terms here give 170 and 150).
inline bool FusedOnChip(const GpuRates& rates, const model::Kernel& kernel) {
  return kernel.kind == model::KernelKind::kAttention &&
         rates.engine == GpuEngine::kTensorCores;
}

}  // namespace trainfare::hardware::models
