#pragma once

// How a GPU cuts a matrix product into tiles, and what share of its arithmetic
// is then useful.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/occupancy.h"
#include "hardware/models/gpu/parameters.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// What multiplies: the CUDA lanes (fp32), or tensor (matrix) cores.
enum class GpuEngine { kLanes, kTensorCores };

inline const GpuEngineFacts& FactsOf(GpuEngine engine) {
  const GpuFacts& facts = FactsOfGpus();
  return engine == GpuEngine::kLanes ? facts.lanes : facts.tensor_cores;
}

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
  // Of the elements that its tiles compute, those of the result: what is
  // beyond its edge is multiplied, too.
  double filled = 1;
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

// Blocks of a tile that one core holds at once.
inline int64_t ResidentBlocks(const GemmTile& tile, const Device& device) {
  const BlockResources block = {
      .threads = tile.threads,
      .registers_per_thread = tile.rows * tile.columns / tile.threads +
                              FactsOfGpus().other_registers,
      .shared_memory = 0};
  return std::max<int64_t>(1, OccupancyOf(device, block).blocks);
}

// The tiles that an engine of a device cuts products into, with what each has
// of its own, whatever the product: a step has many of these.
class GemmTiles {
 public:
  GemmTiles() = default;
  // `peak`: of the engine, in FLOP/s.
  GemmTiles(const Device& device,
            GpuEngine engine,
            double peak,
            double element_bytes)
      : engine_(&FactsOf(engine)),
        tiles_of_batches_(engine == GpuEngine::kLanes && device.generation &&
                                  device.generation->one_batched_tile
                              ? 1
                              : engine_->tiles_of_batches),
        split_depth_(FactsOfGpus().split_depth),
        most_splits_(FactsOfGpus().most_splits),
        cores_(static_cast<double>(device.cores)) {
    const double cache =
        UsualOf(kGpuCacheBandwidthRatio) * device.memory_bandwidth.base();
    for (size_t i = 0; i < engine_->tiles.size(); ++i) {
      const GemmTile& tile = engine_->tiles[i];
      const double bytes = OperandBytesPerFlop(tile, element_bytes);
      terms_[i] = {bytes,
                   FedShare(peak, bytes, cache),
                   static_cast<double>(ResidentBlocks(tile, device))};
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
  // Check: docs/models/gpu.md, tests/hardware/models/gpu/tiling_test.cc.
  TileChoice Choose(const model::GemmExtents& g) const;

 private:
  struct Terms {
    double operand_bytes_per_flop = 0;
    double fed = 0;       // FedShare at the device's usual rates
    double resident = 1;  // blocks on a core
  };

  // Parts that tiles are split into along k where they are fewer than cores.
  double SplitsOf(double tiles, double k) const {
    if (!(tiles < cores_)) return 1.0;
    return std::clamp(std::floor(std::min(cores_ / tiles, k / split_depth_)),
                      1.0,
                      most_splits_);
  }
  // Warps on a core at once, of the tiles that it holds.
  double ActiveWarps(const TileChoice& choice) const {
    const double resident = std::clamp(choice.tiles * choice.splits / cores_,
                                       1.0,
                                       terms_[choice.index].resident);
    return resident * static_cast<double>(choice.tile->threads) /
           static_cast<double>(kGpuThreadsPerWarp);
  }

  const GpuEngineFacts* engine_ = &FactsOf(GpuEngine::kLanes);
  size_t tiles_of_batches_ = 1;
  double split_depth_ = 1;
  double most_splits_ = 1;
  double cores_ = 1;
  std::array<Terms, kMostTiles> terms_{};
};

inline TileChoice GemmTiles::Choose(const model::GemmExtents& g) const {
  std::span<const GemmTile> tiles(engine_->tiles);
  if (g.batch > 1) tiles = tiles.first(tiles_of_batches_);
  const double depth = engine_->pipeline_depth;
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
    const double splits = SplitsOf(count, k);
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
  best.filled =
      useful /
      (best.tiles * static_cast<double>(best.tile->rows * best.tile->columns));
  // What holds the engine back is added with the fitted figures.
  best.share /= terms_[best.index].fed;
  return best;
}

}  // namespace trainfare::hardware::models
