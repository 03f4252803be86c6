#pragma once

// What GPUs of one generation have in common.

#include <optional>

#include "model/units.h"

namespace trainfare::hardware {

// What arithmetic costs them, how it issues, and what their library does.
struct GpuGeneration {
  // A multiply-add's FLOP in fp32 on the lanes, all else that a core does for
  // it included.
  model::JoulesPerFlop<> lanes;
  // A FLOP on tensor cores, as shares of it.
  double tensor_tf32 = 1.0;
  double tensor_half = 1.0;
  // It is more on tensor cores, by an amount that nobody knows: their products
  // draw what the board may.
  bool tensor_cores_at_limit = false;
  // Rate of tensor cores by instructions for which a warp waits (mma.sync), as
  // a share of their peak.
  double synchronous = 1.0;
  // Of products and softmax the share of the shorter that a kernel by other
  // instructions does not hide under the longer; 1: there are no others.
  double exposed_overlap = 1.0;
  // LibTorch's attention is by these others, too.
  bool asynchronous_library = false;
  // FLOPs on the lanes for one special function; absent: as of all GPUs.
  std::optional<double> special_op = std::nullopt;
  // Voltage of a board over that at its full clock, and power of work other than
  // products over the limit; absent: as of other generations.
  std::optional<double> least_voltage = std::nullopt;
  std::optional<double> other_work = std::nullopt;
  // Workspaces of the matrix libraries; absent: as of all GPUs.
  std::optional<model::Bytes<>> workspace = std::nullopt;
  // Rate of fp16 over that of fp32 where it is the slower one.
  std::optional<double> slow_half = std::nullopt;
  // The library has one kernel for batched products on the lanes, of the largest
  // tile.
  bool one_batched_tile = false;
};

class Reader;

// The generation that stands in `map`.
GpuGeneration ReadGpuGeneration(const Reader& map);

}  // namespace trainfare::hardware
