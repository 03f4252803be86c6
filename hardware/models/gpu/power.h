#pragma once

// Which engine multiplies, how fast it may go on within the power limit, and
// what a board draws.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/models/gpu/tiling.h"
#include "model/energy.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware::models {

// fp32 runs on the lanes, except where a device has matrix units for it (its
// fp32 peak then passes that of its vector arithmetic). TF32 is a mode of
// tensor cores only. fp16 and bf16 run on them where there are any: packed
// lanes (Pascal) give no more than twice the fp32 peak and no TF32.
inline GpuEngine EngineOf(const Device& device, model::Precision precision) {
  if (precision == model::Precision::kFp32) {
    const bool matrix_units =
        device.peak.fp32 && device.peak.vector &&
        device.peak.fp32->base() > 1.5 * device.peak.vector->base();
    return matrix_units ? GpuEngine::kTensorCores : GpuEngine::kLanes;
  }
  if (precision == model::Precision::kTf32 || device.peak.tf32) {
    return GpuEngine::kTensorCores;
  }
  const auto peak = device.MatrixPeak(precision);
  const bool packed = peak && device.peak.fp32 &&
                      peak->base() <= 2.5 * device.peak.fp32->base();
  return packed ? GpuEngine::kLanes : GpuEngine::kTensorCores;
}

// Share of the fp32 lanes' peak that their issue slots allow in a product.
//
// A scheduler issues one warp instruction a clock. With 16 lanes to a scheduler
// (64 an SM: P100, V100, T4, A100) an arithmetic instruction takes two clocks,
// and loads and addresses issue in between; with 32 (128 an SM: GP10x, GA10x,
// Ada, Hopper) every other instruction takes a slot from arithmetic.
//
//   s = 1 / (1 + o) on 128 lanes, 1 on 64
//
//   o  other instructions for one arithmetic instruction, 0.25: an 8 x 8 tile
//      a thread loads 4 times 128 bit for its 64 multiply-adds in each step of
//      k, and one in ten is bookkeeping
inline constexpr double kGpuOtherInstructions = 0.25;
inline double IssueShare(const Device& device) {
  if (!device.peak.fp32 || device.clock.base() <= 0.0) return 1.0;
  const double lanes =
      device.peak.fp32->base() /
      (2.0 * device.clock.base() * static_cast<double>(device.cores));
  return lanes > 96.0 ? 1.0 / (1.0 + kGpuOtherInstructions) : 1.0;
}

// Energy of one fp32 multiply-add's FLOP on the lanes, all else that an SM does
// for it included, by the compute capability that an architecture names in
// brackets: what devices known to run at their power limit reach of it in
// neusight_kernels_fp32.csv, long products.
struct GenerationEnergy {
  std::string_view capability;
  double picojoules_per_flop;
};
inline constexpr std::array kLaneEnergies = {
    GenerationEnergy{"(6.", 17.3},   // 16 nm, as Turing
    GenerationEnergy{"(7.", 17.3},   // 12 nm: T4, 4.0 TFLOP/s at 70 W
    GenerationEnergy{"(8.0", 15.4},  // 7 nm: A100 PCIe, 16.2 TFLOP/s at 250 W
    GenerationEnergy{"(8.6", 12.0},  // 8 nm, an assumption between the two
    GenerationEnergy{"(8.9", 7.8},   // 5 nm: L4, 9.2 TFLOP/s at 72 W
    GenerationEnergy{"(9.", 7.8},    // 5 nm
    GenerationEnergy{"(10.", 7.8}};  // 5 nm
// Energy of a FLOP on tensor cores over one on the lanes: from the step times
// of the A100 at 250 W and 400 W in lambda_deeplearning_benchmark.csv.
inline constexpr double kTensorEnergyTf32 = 0.23;
inline constexpr double kTensorEnergyHalf = 0.117;
// Share of the peak that long products reach when power does not limit them.
inline constexpr double kLaneReach = 0.93;
inline constexpr double kTensorReach = 0.6;

// nullopt where the generation's energy is not known.
inline std::optional<model::JoulesPerFlop<>> LaneEnergy(const Device& device) {
  for (const GenerationEnergy& generation : kLaneEnergies) {
    if (device.architecture.find(generation.capability) != std::string::npos) {
      return model::JoulesPerFlop<>(generation.picojoules_per_flop * 1e-12);
    }
  }
  return std::nullopt;
}

// Power that an engine would draw at the rate that long products reach.
//
//   W_demand = E P r
//
//   E  energy of one FLOP, everything included     [J]
//   P  peak of the engine                          [FLOP/s]
//   r  share of it that long products reach        [1]
//
// nullopt where the generation's energy is not known.
inline std::optional<model::Watts<>> DemandedPower(
    const Device& device,
    model::Precision precision,
    model::FlopsPerSecond<> peak) {
  const auto lanes = LaneEnergy(device);
  if (!lanes) return std::nullopt;
  double ratio = 1.0;
  double reach = kLaneReach;
  if (EngineOf(device, precision) == GpuEngine::kTensorCores) {
    reach = kTensorReach;
    ratio = precision == model::Precision::kTf32 ? kTensorEnergyTf32
                                                 : kTensorEnergyHalf;
  } else {
    reach *= IssueShare(device);
  }
  return *lanes * peak * (ratio * reach);
}

// Share of the rate that an engine keeps up within the board's power limit.
//
//   s = min(1, W / W_demand)
//
//   W  power limit of the board                    [W]
//
// 1 where the limit or the generation is not known. The first second of a run
// may be faster than this; training goes on for longer.
// Check: docs/models/gpu.md, tests/hardware/models/gpu/gpu_model_test.cc.
inline double SustainedShare(const Device& device,
                             model::Precision precision,
                             model::FlopsPerSecond<> peak) {
  if (!device.max_power) return 1.0;
  const auto demanded = DemandedPower(device, precision, peak);
  if (!demanded) return 1.0;
  return std::min(1.0, device.max_power->base() / demanded->base());
}

// Power of work other than products, as a share of the limit: a V100 PCIe's
// published energies say 173 - 190 W of 250 W (docs/models/energy.md).
inline constexpr double kOtherWorkPowerShare = 0.72;

// What a board draws in each kind of work; nullopt where its limit or its power
// at rest is not known.
//
//   P_products = min(W, W_demand)
//   P_others   = 0.72 W
//
// Tensor cores before the A100's draw more a FLOP than kTensorEnergyHalf says,
// by an amount that nothing here determines: then P_products = W.
// Check: docs/models/energy.md, tests/hardware/models/gpu/gpu_model_test.cc.
inline std::optional<model::PowerLevels> PowerLevelsOf(
    const Device& device, model::Precision precision) {
  const auto peak = device.MatrixPeak(precision);
  if (!device.max_power || !device.idle_power || !peak) return std::nullopt;
  const model::Watts<> limit = *device.max_power;
  model::PowerLevels levels{
      *device.idle_power, limit, limit * kOtherWorkPowerShare};
  const bool early_tensor_cores =
      EngineOf(device, precision) == GpuEngine::kTensorCores &&
      device.architecture.find("(7.") != std::string::npos;
  const auto demanded = DemandedPower(device, precision, *peak);
  if (demanded && !early_tensor_cores) {
    levels.products = std::min(limit, *demanded);
  }
  return levels;
}

}  // namespace trainfare::hardware::models
