#pragma once

// Time of a step on a GPU: warps hide latency, tiles fill waves, the host
// launches ahead.
//
// A matrix product is cut into tiles that run on the streaming multiprocessors
// (SMs) in waves; the last wave may be part empty (tiling.h). Memory
// traffic is hidden under arithmetic as far as enough warps are active
// (occupancy.h; Hong & Kim, ISCA 2009), and small transfers cannot fill the
// memory pipe (Little's law). The host issues launches into a queue; a device
// that outruns it waits. docs/models/gpu.md works each formula by hand.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/occupancy.h"
#include "hardware/models/gpu/parameters.h"
#include "hardware/models/gpu/power.h"
#include "hardware/models/gpu/tiling.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
#include "model/distinct_kernels.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/launch_queue.h"
#include "model/muon.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

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
  // Of its products and other work the share of the shorter that is not hidden.
  double exposed_overlap = 1.0;
  // The most that an engine reaches by the alignment of rows; nothing where all
  // are as fast: off tensor cores, and where the stack pads.
  std::optional<std::array<double, kRowAlignments>> most;
  GemmTiles tiles;
};

inline GpuRates RatesOf(const Device& device,
                        model::Precision precision,
                        bool pads_products) {
  const auto peak = device.MatrixPeak(precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  GpuRates rates;
  rates.engine = EngineOf(device, precision);
  rates.element_bytes = static_cast<double>(
      precision == model::Precision::kFp8 ? model::kBytesOfFp8
                                          : model::BytesPerElement(precision));
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

// The rates of a workload's kernels: products of 8 bits have their own, those of
// an update in bf16 beside a wider step, and attention in one kernel in tf32:
// LibTorch's flash attention takes 16 bits alone, and what takes its place in
// fp32 and tf32 alike multiplies on the lanes (its memory-efficient attention;
// measured: docs/results/h200.md).
class GpuKernelRates {
 public:
  GpuKernelRates(const Device& device, const model::Workload& workload)
      : others_(RatesOf(device,
                        model::OutsideBlockProducts(workload.precision),
                        model::RulesOf(workload).pads_products)),
        // Libraries of 8 bits refuse rows that are not aligned.
        eight_bits_(workload.precision == model::Precision::kFp8
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
                     Each& eight_bits,
                     Each& update,
                     Each& attention) {
    if (kernel.eight_bits) return eight_bits;
    if (kernel.in_bf16) return update;
    return kernel.kind == model::KernelKind::kAttention ? attention : others;
  }
  const GpuRates& Of(const model::Kernel& kernel) const {
    return Among(kernel, others_, eight_bits_, update_, attention_);
  }
  const GpuRates& others() const { return others_; }
  const GpuRates& eight_bits() const { return eight_bits_; }
  const GpuRates& update() const { return update_; }
  const GpuRates& attention() const { return attention_; }

 private:
  GpuRates others_;
  GpuRates eight_bits_;
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

// What the kernels of a step share of a device with these parameters.
template <class T>
struct GpuTerms {
  GpuTerms(const Device& device, std::span<const T> p);

  model::FlopsPerSecond<T> vector;   // elementwise work
  model::FlopsPerSecond<T> on_chip;  // the same of scores in registers
  T cache;                           // last-level bandwidth, in B/s
  double special_op;                 // FLOPs of vector work for one
  double random_draw;                // the same
  int64_t bytes_of_warps;            // under way, of one warp on each SM
  model::Bytes<> most_in_flight;     // of all warps together
  model::BytesPerSecond<T> streams;  // with so much in flight
  T warps_to_hide;                   // memory's latency, on one SM
};

// Bandwidth of transfers with so much in flight.
template <class T>
model::BytesPerSecond<T> GpuBandwidth(const Device& device,
                                      model::Bytes<> in_flight,
                                      std::span<const T> p) {
  const model::BytesPerSecond<T> peak(T(device.memory_bandwidth.base()));
  const T bound = model::LatencyBoundShare<T>(
      in_flight, peak, model::Seconds<T>(p[kGpuMemoryLatency]));
  return device.memory_bandwidth * (p[kGpuBandwidthEfficiency] * bound);
}

// FLOPs on the lanes for one special function.
inline double SpecialOpOf(const Device& device) {
  const double usual = FactsOfGpus().flops_per_special_op;
  return device.generation ? device.generation->special_op.value_or(usual)
                           : usual;
}

template <class T>
GpuTerms<T>::GpuTerms(const Device& device, std::span<const T> p)
    : vector(device.VectorPeak() * p[kGpuVectorEfficiency]),
      on_chip(device.VectorPeak() * T(1.0)),
      cache(device.memory_bandwidth.base() * p[kGpuCacheBandwidthRatio]),
      special_op(SpecialOpOf(device)),
      random_draw(FactsOfGpus().flops_per_random_draw),
      bytes_of_warps(FactsOfGpus().bytes_per_thread * kGpuThreadsPerWarp *
                     device.cores),
      most_in_flight(
          static_cast<double>(device.warps_per_core * bytes_of_warps)),
      streams(GpuBandwidth<T>(device, most_in_flight, p)),
      warps_to_hide(WarpsToHideLatency<T>(
          device, model::Seconds<T>(p[kGpuMemoryLatency]))) {}

// Arithmetic of a kernel outside the matrix engines.
template <class T>
model::Seconds<T> GpuVectorTime(const model::Kernel& kernel,
                                const GpuTerms<T>& terms,
                                bool on_chip) {
  const double flops =
      static_cast<double>(kernel.vector_flops) +
      terms.special_op * static_cast<double>(kernel.special_ops) +
      terms.random_draw * static_cast<double>(kernel.random_draws);
  return model::Flop(flops) / (on_chip ? terms.on_chip : terms.vector);
}

// Two kinds of work of one kernel, of which the shorter is hidden under the
// longer but for a share.
//
//   t = max(a, b) + exposed min(a, b)
template <class T>
model::Seconds<T> OverlappedTime(model::Seconds<T> a,
                                 model::Seconds<T> b,
                                 double exposed) {
  return a < b ? b + a * exposed : a + b * exposed;
}

// The products of one precision in a step: what many have in common is found
// out once.
template <class T>
class GpuProducts {
 public:
  // What it is made of must outlive it.
  GpuProducts(const GpuRates& rates,
              const GpuTerms<T>& terms,
              std::span<const T> p)
      : rates_(rates), terms_(terms), p_(p) {}

  const GpuRates& rates() const { return rates_; }

  // Time of a kernel's products, at the rate that its tiles reach, or less
  // where that would draw more than the board may. A board whose products are
  // more efficient than its kind's draws less for each.
  model::Seconds<T> Time(const model::Kernel& kernel,
                         const TileChoice& choice) {
    const Fed& fed = FedBy(kernel, choice);
    T rate = fed.rate;
    double filled = 1.0;
    if (FusedOnChip(rates_, kernel)) {
      rate *=
          choice.share * (kernel.blocks_overlap ? rates_.attention
                                                : rates_.attention_backward);
    } else {
      rate *= choice.share * fed.share;
      filled = choice.filled;
    }
    if (rates_.clock.limited()) {
      rate *= rates_.clock.At<T>(
          rate * (rates_.usual_efficiency / (rates_.reach.base() * filled)) /
          p_[rates_.efficiency]);
    }
    return model::Flop(static_cast<double>(kernel.matrix_flops)) /
           model::FlopsPerSecond<T>(rate);
  }

 private:
  // The engine's rate by itself, and what the cache that feeds it leaves.
  struct Fed {
    T rate;
    T share;
  };
  static T Capped(const T& rate, double most) {
    return rate < T(most) ? rate : T(most);
  }
  const Fed& FedBy(const model::Kernel& kernel, const TileChoice& choice) {
    // On the lanes a batched product is as fast as its tiles.
    const bool batched = kernel.kind == model::KernelKind::kBatchedGemm &&
                         rates_.engine == GpuEngine::kTensorCores;
    const bool depends =
        rates_.most && kernel.kind != model::KernelKind::kAttention;
    const auto alignment =
        static_cast<size_t>(depends ? AlignmentOf(kernel, rates_.element_bytes)
                                    : RowAlignment::kFull);
    std::optional<Fed>& fed =
        (batched ? batched_ : single_)[alignment][choice.index];
    if (!fed) {
      T rate = rates_.matrix.base() * p_[rates_.efficiency];
      if (batched) rate *= p_[kGpuBatchedGemmRatio];
      if (alignment > 0) rate = Capped(rate, (*rates_.most)[alignment]);
      fed = Fed{rate,
                FedShare(rate, choice.operand_bytes_per_flop, terms_.cache)};
    }
    return *fed;
  }

  const GpuRates& rates_;
  const GpuTerms<T>& terms_;
  std::span<const T> p_;
  // By the alignment and the tile.
  using OfTiles = std::array<std::optional<Fed>, kMostTiles>;
  std::array<OfTiles, kRowAlignments> single_{};
  std::array<OfTiles, kRowAlignments> batched_{};
};

// Bytes that a reduction reads beyond those counted, since its result waits for
// sums over the row: none of rows that a warp holds in registers, and of longer
// ones what the cache has lost in between, with the rows of all blocks under way
// at once (PyTorch's softmax and norm: SoftMax.cu, layer_norm_kernel.cu).
//
//   lost = 1 / (1 + (share of the cache / rows under way)^4)
inline double BytesReadAgain(const Device& device,
                             const model::Kernel& kernel) {
  if (kernel.row_reads == model::RowReads::kOnce || kernel.work_items < 1) {
    return 0.0;
  }
  const GpuFacts& facts = FactsOfGpus();
  const bool norm = kernel.row_reads == model::RowReads::kNorm;
  const auto rows = static_cast<double>(kernel.work_items);
  const auto read = static_cast<double>(kernel.bytes_read);
  const double row =
      std::max(read / 2.0, static_cast<double>(kernel.bytes_written)) / rows;
  if (!norm && row <= static_cast<double>(facts.held_row_bytes)) return 0.0;
  const int64_t warps = norm ? facts.norm_warps : facts.softmax_warps;
  const auto at_once = static_cast<double>(
      device.cores * std::max<int64_t>(1, device.warps_per_core / warps));
  const double under_way = std::min(rows, at_once) * read / rows;
  const double fill =
      facts.cache_of_rows * device.on_chip_memory.base() / under_way;
  const double square = fill * fill;
  const double again = kernel.row_reads == model::RowReads::kThrice ? 2.0 : 1.0;
  return again * read / (1.0 + square * square);
}

// Time of a kernel's bytes, of which a cache finds some, and which latency may
// keep below the bandwidth.
template <class T>
model::Seconds<T> GpuMemoryTime(const Device& device,
                                const model::Kernel& kernel,
                                const GpuTerms<T>& terms,
                                std::span<const T> p) {
  // Over what nobody moves there is no rate.
  if (kernel.bytes() == 0) return model::Seconds<T>();
  const auto bytes = [](int64_t count) {
    return model::Byte(static_cast<double>(count));
  };
  const auto activations = bytes(kernel.bytes() - kernel.parameter_bytes);
  const double uncached =
      model::UncachedShare(activations, device.on_chip_memory);
  const T share = uncached + (1.0 - uncached) / p[kGpuCacheBandwidthRatio];
  const auto moved =
      bytes(kernel.parameter_bytes) +
      (activations + model::Byte(BytesReadAgain(device, kernel))) * share;
  if (bytes(kernel.bytes()) < terms.most_in_flight) {
    return moved / GpuBandwidth<T>(device, bytes(kernel.bytes()), p);
  }
  return moved / terms.streams;
}

template <class T>
model::ExposedTime<T> GpuKernelTime(const Device& device,
                                    GpuProducts<T>& products,
                                    const model::Kernel& kernel,
                                    const GpuTerms<T>& terms,
                                    std::span<const T> p) {
  // Warps on an SM; threads of elementwise work move what they keep under way.
  double active_warps =
      std::clamp(static_cast<double>(kernel.bytes()) /
                     static_cast<double>(terms.bytes_of_warps),
                 1.0,
                 static_cast<double>(device.warps_per_core));
  const GpuRates& rates = products.rates();
  model::Seconds<T> compute;
  if (kernel.matrix_flops > 0) {
    const TileChoice choice = rates.tiles.Choose(kernel.gemm);
    active_warps = choice.active_warps;
    compute += products.Time(kernel, choice);
  }
  if (kernel.vector_flops > 0 || kernel.special_ops > 0 ||
      kernel.random_draws > 0) {
    // Scores in registers take the lanes at their full rate.
    const bool on_chip = FusedOnChip(rates, kernel);
    const double exposed =
        on_chip && kernel.blocks_overlap ? rates.exposed_overlap : 1.0;
    compute = OverlappedTime<T>(
        compute, GpuVectorTime<T>(kernel, terms, on_chip), exposed);
  }
  const model::Seconds<T> memory = GpuMemoryTime<T>(device, kernel, terms, p);
  const model::Seconds<T> fixed(p[kGpuKernelOverhead]);
  if (terms.warps_to_hide < T(active_warps)) {
    return model::RooflineTime<T>(compute, memory, fixed);
  }
  return model::KernelTime<T>(
      compute, memory, active_warps / terms.warps_to_hide, fixed);
}

// The same of a kernel that shares nothing with others.
template <class T>
model::ExposedTime<T> GpuKernelTime(const Device& device,
                                    const GpuRates& rates,
                                    const model::Kernel& kernel,
                                    std::span<const T> p) {
  const GpuTerms<T> terms(device, p);
  GpuProducts<T> products(rates, terms, p);
  return GpuKernelTime<T>(device, products, kernel, terms, p);
}

// A kernel by itself, launched again and again: the device works on one launch
// while the host issues the next, so the slower of the two sets the pace.
//
//   t = max(launch, kernel) launches
template <class T>
model::Seconds<T> GpuKernelAlone(const Device& device,
                                 const model::Workload& workload,
                                 const model::Kernel& kernel,
                                 std::span<const T> p) {
  ENSURE(p.size() == kGpuParameterCount, "parameters of another model");
  const model::Seconds<T> busy =
      GpuKernelTime<T>(
          device, GpuKernelRates(device, workload).Of(kernel), kernel, p)
          .total();
  const model::Seconds<T> launch(p[kGpuLaunchCost]);
  return (busy < launch ? launch : busy) * static_cast<double>(kernel.launches);
}

// Host time of one launch in a step, in seconds.
template <class T>
T LaunchTime(model::Launches launches, std::span<const T> p) {
  switch (launches) {
    case model::Launches::kByFramework:
      return p[kGpuLaunchCost];
    case model::Launches::kByModules:
      return p[kGpuLaunchCost] * FactsOfHosts().module_launch_share;
    case model::Launches::kByLibrary:
      return p[kGpuLaunchCost] * p[kGpuLibraryLaunchShare];
    case model::Launches::kByGraph:
      return p[kGpuLaunchCost] * p[kGpuCompiledLaunchShare];
    case model::Launches::kOnce:
      break;
  }
  return T(0.0);
}

// Tensors of one Transformer layer: a weight and a bias of six linear maps and
// two norms; embeddings and head have half as many again.
inline constexpr int64_t kGpuTensorsPerLayer = 16;
inline constexpr int64_t kGpuOtherTensors = 8;

// Host work of an optimizer step outside its launches.
template <class T>
model::Seconds<T> OptimizerHostTime(const model::Workload& workload,
                                    const T& a_tensor) {
  if (workload.work != model::Work::kTraining ||
      workload.parallel.offload != model::Offload::kNone ||
      model::RulesOf(workload).launches == model::Launches::kOnce) {
    return model::Seconds<T>(T(0.0));
  }
  const int64_t layers =
      workload.architecture.blocks() - workload.trainable.frozen_layers;
  const int64_t of_layer =
      model::RulesOf(workload).flat_layers ? 1 : kGpuTensorsPerLayer;
  const int64_t tensors = workload.trainable.lora_rank == 0
                              ? of_layer * layers + kGpuOtherTensors
                              : model::TrainableTensorCount(workload);
  return model::Seconds<T>(a_tensor * static_cast<double>(tensors));
}

// What one launch of a kernel takes in a step.
template <class T>
struct GpuLaunchTime {
  model::ExposedTime<T> exposed;
  model::Seconds<T> total;
};

// The same of all kernels of a step, which all take `slower` times as long as
// the board's own limit lets them.
template <class T>
class GpuLaunchTimes {
 public:
  // Of so many kernels. What it is made of must outlive it.
  GpuLaunchTimes(const Device& device,
                 const model::Workload& workload,
                 size_t kernels,
                 std::span<const T> p,
                 const std::optional<T>& slower)
      : device_(device),
        p_(p),
        slower_(slower),
        slower_kernels_(model::RulesOf(workload).slower_kernels),
        rates_(device, workload),
        terms_(device, p),
        distinct_(kernels) {
    times_.reserve(kernels);
  }
  GpuLaunchTimes(const GpuLaunchTimes&) = delete;  // parts refer to others
  GpuLaunchTimes& operator=(const GpuLaunchTimes&) = delete;

  // The kernel must outlive this.
  const GpuLaunchTime<T>& Of(const model::Kernel& kernel) {
    const size_t number = distinct_.NumberOf(kernel);
    if (number == times_.size()) {
      const model::ExposedTime<T> exposed = Exposed(kernel);
      times_.push_back({exposed, exposed.total()});
    }
    return times_[number];
  }

 private:
  model::ExposedTime<T> Exposed(const model::Kernel& kernel) {
    std::optional<GpuProducts<T>>& products = GpuKernelRates::Among(
        kernel, others_, eight_bits_, update_, attention_);
    if (!products) products.emplace(rates_.Of(kernel), terms_, p_);
    auto exposed = GpuKernelTime<T>(device_, *products, kernel, terms_, p_);
    if (slower_kernels_) {
      exposed.memory = exposed.memory / p_[kGpuCompiledEfficiency];
    }
    return slower_ ? exposed * *slower_ : exposed;
  }

  const Device& device_;
  std::span<const T> p_;
  const std::optional<T>& slower_;
  bool slower_kernels_;
  GpuKernelRates rates_;
  GpuTerms<T> terms_;
  // Most steps have some of them alone.
  std::optional<GpuProducts<T>> others_;
  std::optional<GpuProducts<T>> eight_bits_;
  std::optional<GpuProducts<T>> update_;
  std::optional<GpuProducts<T>> attention_;
  model::DistinctKernels distinct_;
  std::vector<GpuLaunchTime<T>> times_;  // of one launch of each
};

// A step whose kernels all take `slower` times as long as the board's own limit
// lets them.
template <class T>
StepTime<T> GpuStepSlowed(const Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const T> p,
                          const std::optional<T>& slower) {
  ENSURE(p.size() == kGpuParameterCount, "parameters of another model");
  const model::StackRules& stack = model::RulesOf(workload);
  GpuLaunchTimes<T> times(device, workload, kernels.kernels.size(), p, slower);
  const model::Seconds<T> launch(LaunchTime<T>(stack.launches, p));

  // The two clocks run on through the phases of a step; what a phase waits
  // for the host is its overhead.
  model::LaunchQueue<T> queue;
  return SumSegments<T>(
      workload,
      kernels,
      [&](const model::Segment& segment) {
        PhaseTime<T> time;
        model::LaunchMap<T> map;
        for (const model::Kernel& kernel : kernels.Of(segment)) {
          const GpuLaunchTime<T>& once = times.Of(kernel);
          AddKernel(time, kernel, once.exposed);
          map.Append(launch, once.total, kernel.launches);
        }
        time = time * static_cast<double>(segment.repeat);
        const model::Seconds<T> before = queue.ready;
        queue.Apply(map.Repeated(segment.repeat));
        const model::Seconds<T> waited = (queue.ready - before) - time.total();
        time.overhead += waited;
        return time;
      },
      OptimizerHostTime<T>(workload, p[kGpuTensorOverhead]));
}

// Under a limit below the board's own a run goes at the clock of its mean power:
// the driver regulates over far longer than a kernel takes.
template <class T>
StepTime<T> GpuStep(const Device& device,
                    const model::Workload& workload,
                    const model::KernelList& kernels,
                    std::span<const T> p) {
  const auto within = [&](const std::optional<T>& slower) {
    return GpuStepSlowed<T>(device, workload, kernels, p, slower);
  };
  StepTime<T> step = within(std::nullopt);
  if (workload.power_limit.base() <= 0.0) return step;
  const T clock = ClockWithinSetLimit(device, workload, BusySharesOf(step));
  return clock < T(1.0) ? within(T(1.0) / clock) : step;
}

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
  set.set(rates.eight_bits().efficiency);
  set.set(rates.update().efficiency);
  set.set(rates.attention().efficiency);
  const model::StackRules& stack = model::RulesOf(workload);
  set.set(kGpuLibraryLaunchShare,
          stack.launches == model::Launches::kByLibrary);
  set.set(kGpuCompiledLaunchShare, stack.launches == model::Launches::kByGraph);
  set.set(kGpuCompiledEfficiency, stack.slower_kernels);
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
