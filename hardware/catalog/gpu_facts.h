#pragma once

// What is taken of every GPU, from hardware/kinds/gpu.yaml: how its libraries
// cut matrix products into tiles, what its engines reach, what a core holds.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainfare::hardware {

class Reader;

// A tile of C (rows x columns) that one thread block computes; both ways round.
// Its sides are powers of two.
struct GemmTile {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t threads = 1;
  // Arithmetic rate relative to the largest tile.
  double relative_rate = 1;
};

// No engine has more tiles.
inline constexpr size_t kMostTiles = 8;

struct GpuEngineFacts {
  // Share of the peak that long products reach when power does not limit them.
  double reach = 1;
  // Depth of k over which a tile's pipeline fills and its result drains.
  double pipeline_depth = 0;
  std::vector<GemmTile> tiles;  // largest first
  size_t tiles_of_batches = 0;  // the first of them, for strided batches
};

struct GpuFacts {
  GpuEngineFacts lanes;
  GpuEngineFacts tensor_cores;
  // A tile's k may be split over blocks down to this depth, so many times.
  double split_depth = 1;
  double most_splits = 1;
  // Registers of a thread beside its share of the tile's fp32 accumulators.
  int64_t other_registers = 0;
  // Other instructions for one arithmetic instruction of the lanes.
  double other_instructions = 0;
  // FLOPs of an SM and clock that kernels of tensor cores reach which read or
  // write rows one by one of 2 bytes, and 4 or 8 at a time, since rows start at
  // multiples of no more.
  double flops_of_odd_rows = 0;
  double flops_of_even_rows = 0;
  // Blocks that an SM holds whatever they need, the units in which it hands
  // registers to warps, and the bytes that one thread keeps under way.
  int64_t blocks_per_core = 1;
  int64_t register_unit = 1;
  int64_t bytes_per_thread = 1;
  double flops_per_special_op = 0;
  double flops_per_random_draw = 0;
  // Warps that work on a row of a norm, and of a softmax; what a row takes that
  // stays in a warp's registers; the share of the last-level cache that rows
  // under way may fill, so that they are found there once more.
  int64_t norm_warps = 1;
  int64_t softmax_warps = 1;
  int64_t held_row_bytes = 0;
  double cache_of_rows = 1;
  // Rate of the first flash attention over FlashAttention-2's.
  double flash_1_share = 1;
  // Rate of the products of attention in one kernel backward over forward, where
  // a warp waits for each.
  double waiting_backward = 1;
  // Least voltage of a board over that at its full clock.
  double least_voltage = 1;
  // What PyTorch's allocator holds at most beyond tensors, as a share of them,
  // and where all blocks are computed anew.
  double memory_gaps = 0;
  double memory_gaps_anew = 0;
  // Energy of a FLOP in fp8 and nvfp4 over that in 16 bits.
  double fp8_energy = 1;
  double fp4_energy = 1;
};

// From the top of the file. Throws InputError with file:line:col.
GpuFacts ReadGpuFacts(const Reader& root);

}  // namespace trainfare::hardware
