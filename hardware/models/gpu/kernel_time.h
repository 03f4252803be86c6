#pragma once

// Time of one kernel on a GPU. Memory traffic is hidden under arithmetic as far
// as enough warps are active (occupancy.h; Hong & Kim, ISCA 2009), and small
// transfers cannot fill the memory pipe (Little's law).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/occupancy.h"
#include "hardware/models/gpu/parameters.h"
#include "hardware/models/gpu/rates.h"
#include "hardware/models/gpu/tiling.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

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
    const Fed fed = FedBy(kernel, choice);
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
  // What a product gets of the engine's rate beside its tiles: all, what small
  // ones get, and what those over chunks do.
  enum Group { kSingle, kBatched, kChunks };
  Group GroupOf(const model::Kernel& kernel) const {
    // On the lanes a batched product is as fast as its tiles.
    if (rates_.engine == GpuEngine::kLanes) return kSingle;
    if (kernel.kind == model::KernelKind::kBatchedGemm) return kBatched;
    return kernel.kind == model::KernelKind::kChunkGemm ? kChunks : kSingle;
  }
  T RateOf(Group group) const {
    T rate = rates_.matrix.base() * p_[rates_.efficiency];
    if (group != kSingle) rate *= p_[kGpuBatchedGemmRatio];
    if (group == kChunks) rate *= p_[kGpuChunkGemmRatio] * rates_.synchronous;
    return rate;
  }
  Fed FedBy(const model::Kernel& kernel, const TileChoice& choice) {
    const bool depends =
        rates_.most && kernel.kind != model::KernelKind::kAttention;
    const RowAlignment alignment =
        depends ? AlignmentOf(kernel, rates_.element_bytes)
                : RowAlignment::kFull;
    const Feed feed{GroupOf(kernel), alignment, choice.index};
    for (const auto& [known, fed] : fed_) {
      if (known == feed) return fed;
    }
    T rate = RateOf(feed.group);
    if (alignment != RowAlignment::kFull) {
      rate = Capped(rate, (*rates_.most)[static_cast<size_t>(alignment)]);
    }
    Fed fed{rate, FedShare(rate, choice.operand_bytes_per_flop, terms_.cache)};
    fed_.emplace_back(feed, fed);
    return fed;
  }

  // What a product's rate hangs on besides its share of whole waves.
  struct Feed {
    Group group;
    RowAlignment alignment;
    size_t tile;
    friend bool operator==(const Feed&, const Feed&) = default;
  };

  const GpuRates& rates_;
  const GpuTerms<T>& terms_;
  std::span<const T> p_;
  // A step has few of them.
  std::vector<std::pair<Feed, Fed>> fed_;
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

}  // namespace trainfare::hardware::models
