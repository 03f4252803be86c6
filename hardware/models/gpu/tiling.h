#pragma once

// How a GPU cuts a matrix product into tiles, and what share of its arithmetic
// is then useful.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "hardware/catalog/device.h"
#include "hardware/models/gpu/occupancy.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// What multiplies: the CUDA lanes (fp32), or tensor (matrix) cores.
enum class GpuEngine { kLanes, kTensorCores };

// A tile of C (rows x columns) that one thread block computes; both ways round.
struct GemmTile {
  int64_t rows;
  int64_t columns;
  int64_t threads;
  // Arithmetic rate relative to the largest tile.
  double relative_rate;
};

// cuBLAS's fp32 kernels by name, largest first. The rates are what each reaches
// of the largest one's, median over linear layers on P100, V100, T4 and A100
// in neusight_kernels_fp32.csv (docs/models/gpu.md).
inline constexpr std::array kLaneTiles = {GemmTile{128, 128, 256, 1.00},
                                          GemmTile{128, 64, 128, 0.98},
                                          GemmTile{64, 64, 128, 0.90},
                                          GemmTile{128, 32, 256, 0.88},
                                          GemmTile{64, 32, 256, 0.78},
                                          GemmTile{32, 32, 128, 0.65}};
// On tensor cores smaller tiles are slower because they fetch more operands a
// FLOP from the last-level cache, which OperandBytesPerFlop() accounts for.
inline constexpr std::array kTensorTiles = {GemmTile{256, 128, 256, 1.00},
                                            GemmTile{128, 128, 256, 1.00},
                                            GemmTile{128, 64, 128, 1.00},
                                            GemmTile{64, 64, 128, 1.00},
                                            GemmTile{64, 32, 128, 1.00}};
constexpr bool SidesArePowersOfTwo(std::span<const GemmTile> tiles) {
  return std::all_of(tiles.begin(), tiles.end(), [](const GemmTile& tile) {
    return std::has_single_bit(static_cast<uint64_t>(tile.rows)) &&
           std::has_single_bit(static_cast<uint64_t>(tile.columns));
  });
}
static_assert(SidesArePowersOfTwo(kLaneTiles) &&
              SidesArePowersOfTwo(kTensorTiles));
// Strided batches get the large tiles only: neusight_kernels_fp32.csv shows
// one kernel for every batched shape on A100 and L4, 128 x 128.
inline constexpr size_t kBatchedLaneTiles = 2;

// Depth of k over which a tile's pipeline fills and its result drains.
inline constexpr double kLanePipelineDepth = 8.0;
inline constexpr double kTensorPipelineDepth = 32.0;
// A tile's k may be split over blocks down to this depth, so many times.
inline constexpr double kGemmSplitDepth = 512.0;
inline constexpr double kGemmSplits = 16.0;

// Registers of a thread beside its share of the tile's fp32 accumulators.
inline constexpr int64_t kGemmOtherRegisters = 48;

// Bandwidth of the last-level cache over device memory's (A100: 4.4 - 5.1
// against 1.6 TB/s; V100: 2.2 - 2.7 against 0.9 TB/s).
inline constexpr double kGpuCacheSpeedup = 2.7;

struct TileChoice {
  // Useful arithmetic over what the scheduled waves could do at full rate.
  double share = 0.0;
  // Operand bytes fetched from the last-level cache for one FLOP.
  double operand_bytes_per_flop = 0.0;
  double active_warps = 1.0;  // on an SM
  int64_t waves = 0;
  const GemmTile* tile = nullptr;
  size_t index = 0;  // of that among its engine's
  double tiles = 0.0;
  double splits = 1.0;  // of k, each by a block of its own
};

// Operand bytes of a tile for one FLOP: each step of k fetches a column of A
// and a row of B for rows x columns multiply-adds.
//
//   i = (rows + columns) element / (2 rows columns)
inline double OperandBytesPerFlop(const GemmTile& tile, double element_bytes) {
  return static_cast<double>(tile.rows + tile.columns) * element_bytes /
         static_cast<double>(2 * tile.rows * tile.columns);
}

// The engine's rate is held back by the cache that feeds it; the two overlap
// imperfectly, which a root of squares describes with the right limits.
//
//   r = 1 / sqrt(1 + (P i / C)^2)
//
//   P  rate of the engine alone           [FLOP/s]
//   i  operand bytes a FLOP               [B/FLOP]
//   C  bandwidth of the last-level cache  [B/s]
template <class T>
T FedShare(T rate, double operand_bytes_per_flop, T cache_bandwidth) {
  using std::sqrt;
  const T load = rate * operand_bytes_per_flop / cache_bandwidth;
  return 1.0 / sqrt(1.0 + load * load);
}

// Parts that tiles are split into along k where they are fewer than cores.
inline double SplitsOf(double tiles, double cores, double k) {
  if (!(tiles < cores)) return 1.0;
  return std::clamp(std::floor(std::min(cores / tiles, k / kGemmSplitDepth)),
                    1.0,
                    kGemmSplits);
}

// Blocks of a tile that one core holds at once.
inline int64_t ResidentBlocks(const GemmTile& tile, const Device& device) {
  const BlockResources block = {
      .threads = tile.threads,
      .registers_per_thread =
          tile.rows * tile.columns / tile.threads + kGemmOtherRegisters,
      .shared_memory = 0};
  return std::max<int64_t>(1, OccupancyOf(device, block).blocks);
}

// The tiles that an engine of a device cuts products into, with what each has
// of its own, whatever the product: a step has many of these.
class GemmTiles {
 public:
  static constexpr size_t kMost =
      std::max(kLaneTiles.size(), kTensorTiles.size());

  GemmTiles() = default;
  // `peak`: of the engine, in FLOP/s.
  GemmTiles(const Device& device,
            GpuEngine engine,
            double peak,
            double element_bytes)
      : lanes_(engine == GpuEngine::kLanes),
        cores_(static_cast<double>(device.cores)) {
    const double cache = kGpuCacheSpeedup * device.memory_bandwidth.base();
    const std::span<const GemmTile> tiles = Tiles();
    for (size_t i = 0; i < tiles.size(); ++i) {
      const double bytes = OperandBytesPerFlop(tiles[i], element_bytes);
      terms_[i] = {bytes,
                   FedShare(peak, bytes, cache),
                   static_cast<double>(ResidentBlocks(tiles[i], device))};
    }
  }

  // The tile with the largest share of useful work for C (m, n) = A (m, k) B.
  //
  //   tiles  = batch ceil(m / rows) ceil(n / columns), each k split s times
  //   waves  = ceil(tiles s / SMs)
  //   share  = r f m n batch s / (waves SMs rows columns) (k / s) / (k / s + d)
  //
  //   r  the tile's relative rate, f its FedShare, d the pipeline depth
  //
  // One wave gives each SM one tile: tiles on the same SM take turns on its
  // engine, so that two resident tiles are no faster than one after the other.
  // The library's choice is taken to be the best one.
  // Check: docs/models/gpu.md, tests/hardware/models/gpu/gpu_model_test.cc.
  TileChoice Choose(const model::GemmExtents& g) const;

 private:
  struct Terms {
    double operand_bytes_per_flop = 0;
    double fed = 0;       // FedShare at the device's usual rates
    double resident = 1;  // blocks on a core
  };

  std::span<const GemmTile> Tiles() const {
    return lanes_ ? std::span<const GemmTile>(kLaneTiles)
                  : std::span<const GemmTile>(kTensorTiles);
  }
  // Warps on a core at once, of the tiles that it holds.
  double ActiveWarps(const TileChoice& choice) const {
    const double resident = std::clamp(choice.tiles * choice.splits / cores_,
                                       1.0,
                                       terms_[choice.index].resident);
    return resident * static_cast<double>(choice.tile->threads) /
           static_cast<double>(kGpuThreadsPerWarp);
  }

  bool lanes_ = true;
  double cores_ = 1;
  std::array<Terms, kMost> terms_{};
};

inline TileChoice GemmTiles::Choose(const model::GemmExtents& g) const {
  std::span<const GemmTile> tiles = Tiles();
  if (lanes_ && g.batch > 1) tiles = tiles.first(kBatchedLaneTiles);
  const double depth = lanes_ ? kLanePipelineDepth : kTensorPipelineDepth;
  const auto k = static_cast<double>(g.k);
  const auto useful = static_cast<double>(g.batch) * static_cast<double>(g.m) *
                      static_cast<double>(g.n);
  // Sides are powers of two, and a division takes as long as all else here.
  const auto pieces = [](int64_t extent, int64_t side) {
    return (extent + side - 1) >> std::countr_zero(static_cast<uint64_t>(side));
  };
  TileChoice best;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const GemmTile& tile = tiles[i];
    const double rate = tile.relative_rate * terms_[i].fed;
    if (rate <= best.share) continue;
    const auto upright = static_cast<double>(g.batch * pieces(g.m, tile.rows) *
                                             pieces(g.n, tile.columns));
    const auto turned = static_cast<double>(
        g.batch * pieces(g.m, tile.columns) * pieces(g.n, tile.rows));
    const double count = std::min(upright, turned);
    const double splits = SplitsOf(count, cores_, k);
    const double waves = std::ceil(count * splits / cores_);
    const double part = k / splits;
    const double share =
        rate * useful * splits /
        (waves * cores_ * static_cast<double>(tile.rows * tile.columns)) *
        (part / (part + depth));
    if (share > best.share) {
      best.share = share;
      best.operand_bytes_per_flop = terms_[i].operand_bytes_per_flop;
      best.waves = static_cast<int64_t>(waves);
      best.tile = &tile;
      best.index = i;
      best.tiles = count;
      best.splits = splits;
    }
  }
  if (best.tile == nullptr) return best;
  best.active_warps = ActiveWarps(best);
  // What holds the engine back is added with the fitted figures.
  best.share /= terms_[best.index].fed;
  return best;
}

}  // namespace trainfare::hardware::models
