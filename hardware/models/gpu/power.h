#pragma once

// Which engine multiplies, how fast it may go on within the power limit, and
// what a board draws.

#include <algorithm>
#include <cmath>
#include <optional>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
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
//   o  other instructions for one arithmetic instruction
inline double IssueShare(const Device& device) {
  if (!device.peak.fp32 || device.clock.base() <= 0.0) return 1.0;
  const double lanes =
      device.peak.fp32->base() /
      (2.0 * device.clock.base() * static_cast<double>(device.cores));
  return lanes > 96.0 ? 1.0 / (1.0 + FactsOfGpus().other_instructions) : 1.0;
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
  if (!device.generation) return std::nullopt;
  double ratio = 1.0;
  const GpuEngine engine = EngineOf(device, precision);
  double reach = FactsOf(engine).reach;
  if (engine == GpuEngine::kTensorCores) {
    ratio = precision == model::Precision::kTf32
                ? device.generation->tensor_tf32
                : device.generation->tensor_half;
    if (precision == model::Precision::kFp8) ratio *= FactsOfGpus().fp8_energy;
  } else {
    reach *= IssueShare(device);
  }
  return device.generation->lanes * peak * (ratio * reach);
}

// Clock that a board keeps up within its power limit, as a share of its full
// one, when a kernel's products go at `load` of the rate that long ones reach.
//
//   d = (W - W_0) / ((W_demand - W_0) load)
//   s = 1              d >= 1
//   s = d^(1/3)        d^(1/3) >= v: the voltage falls with the clock
//   s = d / v^2        else: the voltage is at its least
//
//   W    power limit of the board                               [W]
//   W_0  what it draws at rest, in the state in which it works  [W]
//   v    least voltage over that of the full clock              [1]
//
// Power beyond that at rest goes with the clock and the square of the voltage
// (Weste & Harris, CMOS VLSI Design, 4th ed., section 5.2). The first second of
// a run may be faster than this; training goes on for longer.
// Check: docs/models/gpu.md, tests/hardware/models/gpu/gpu_model_test.cc.
class ClockWithinLimit {
 public:
  // Always 1 where the limit or the generation's energy is not known.
  ClockWithinLimit() = default;
  ClockWithinLimit(const Device& device,
                   model::Precision precision,
                   model::FlopsPerSecond<> peak)
      : least_voltage_(FactsOfGpus().least_voltage) {
    const auto demanded = DemandedPower(device, precision, peak);
    if (!demanded || !device.max_power) return;
    const double limit = device.max_power->base();
    const double rest = device.idle_power ? device.idle_power->base()
                                          : limit * device.rest_power_share;
    if (demanded->base() > rest) {
      budget_ = (limit - rest) / (demanded->base() - rest);
    }
  }

  // Whether it may be below 1.
  bool limited() const { return budget_.has_value(); }

  template <class T>
  T At(const T& load) const {
    using std::cbrt;
    if (!budget_ || !(load > T(*budget_))) return T(1.0);
    const T dynamic = *budget_ / load;
    const T scaled = cbrt(dynamic);
    return scaled < T(least_voltage_)
               ? T(dynamic / (least_voltage_ * least_voltage_))
               : scaled;
  }

 private:
  std::optional<double> budget_;  // d at a load of 1
  double least_voltage_ = 1.0;
};

// What a board draws in each kind of work; nullopt where its limit or its power
// at rest is not known.
//
//   P_products = min(W, W_demand)
//   P_others   = o W
//
//   o  share of the limit that other work draws    [1]
//
// Where tensor cores draw more a FLOP than anybody says, P_products = W.
// Check: docs/models/energy.md,
// tests/hardware/models/gpu/gpu_model_test.cc.
inline std::optional<model::PowerLevels> PowerLevelsOf(
    const Device& device, model::Precision precision) {
  const auto peak = device.MatrixPeak(precision);
  if (!device.max_power || !device.idle_power || !peak) return std::nullopt;
  const model::Watts<> limit = *device.max_power;
  model::PowerLevels levels{
      *device.idle_power, limit, limit * device.other_work_power_share};
  const bool at_limit = device.generation &&
                        device.generation->tensor_cores_at_limit &&
                        EngineOf(device, precision) == GpuEngine::kTensorCores;
  const auto demanded = DemandedPower(device, precision, *peak);
  if (demanded && !at_limit) {
    levels.products = std::min(limit, *demanded);
  }
  return levels;
}

}  // namespace trainfare::hardware::models
