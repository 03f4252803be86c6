#pragma once

// Which engine multiplies, how fast it may go on within the power limit, and
// what a board draws.

#include <algorithm>
#include <cmath>
#include <optional>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/gpu/tiling.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"
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
    if (precision == model::Precision::kFp4) {
      ratio *= FactsOfGpus().fp4_energy;
    }
  } else {
    reach *= IssueShare(device);
  }
  return device.generation->lanes * peak * (ratio * reach);
}

// Least voltage of a board over that at its full clock.
inline double LeastVoltage(const Device& device) {
  const double usual = FactsOfGpus().least_voltage;
  return device.generation ? device.generation->least_voltage.value_or(usual)
                           : usual;
}

// Clock at a share `d` of the power beyond that at rest, as a share of the clock
// of all of it.
//
//   s = 1              d >= 1
//   s = d^(1/3)        d^(1/3) >= v: the voltage falls with the clock
//   s = d / v^2        else: the voltage is at its least
//
//   v    least voltage over that of the full clock              [1]
//
// Power beyond that at rest goes with the clock and the square of the voltage
// (Weste & Harris, CMOS VLSI Design, 4th ed., section 5.2).
template <class T>
T ClockAtPower(const T& d, double least) {
  using std::cbrt;
  if (!(d < T(1.0))) return T(1.0);
  const T scaled = cbrt(d);
  return scaled < T(least) ? T(d / (least * least)) : scaled;
}

// Clock that a board keeps up within its power limit, as a share of its full
// one, when a kernel's products go at `load` of the rate that long ones reach.
//
//   d = (W - W_0) / ((W_demand - W_0) load)
//
//   W    power limit of the board                               [W]
//   W_0  what it draws at rest, in the state in which it works  [W]
//
// The first second of a run may be faster than this; training goes on for
// longer.
// Check: docs/models/gpu.md, tests/hardware/models/gpu/power_test.cc.
class ClockWithinLimit {
 public:
  // Always 1 where the limit or the generation's energy is not known.
  ClockWithinLimit() = default;
  ClockWithinLimit(const Device& device,
                   model::Precision precision,
                   model::FlopsPerSecond<> peak)
      : least_voltage_(LeastVoltage(device)) {
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
    if (!budget_ || !(load > T(*budget_))) return T(1.0);
    return ClockAtPower(T(*budget_ / load), least_voltage_);
  }

 private:
  std::optional<double> budget_;  // d at a load of 1
  double least_voltage_ = 1.0;
};

// What a board draws in each kind of work; nullopt where its limit or its power
// at rest is not known.
//
//   P_products = min(W, W_demand)
//   P_others   = min(W, o W_board)
//
//   W  limit of the run, W_board of the board      [W]
//   o  share of it that other work draws           [1]
//
// Where tensor cores draw more a FLOP than anybody says, P_products = W.
// Check: docs/models/energy.md,
// tests/hardware/models/gpu/power_test.cc.
inline std::optional<model::PowerLevels> PowerLevelsOf(
    const Device& device, const model::Workload& workload) {
  const model::Precision precision = workload.precision;
  const auto peak = device.MatrixPeak(precision);
  if (!device.max_power || !device.idle_power || !peak) return std::nullopt;
  const model::Watts<> limit = *PowerLimitOf(device, workload);
  const double usual = device.other_work_power_share;
  const double others =
      device.generation ? device.generation->other_work.value_or(usual) : usual;
  model::PowerLevels levels{
      *device.idle_power, limit, std::min(limit, *device.max_power * others)};
  const bool at_limit = device.generation &&
                        device.generation->tensor_cores_at_limit &&
                        EngineOf(device, precision) == GpuEngine::kTensorCores;
  const auto demanded = DemandedPower(device, precision, *peak);
  if (demanded && !at_limit) {
    levels.products = std::min(limit, *demanded);
  }
  return levels;
}

// Clock of a run within a limit below its board's own, as a share of the one
// that it has within that, by the shares of time that its kinds of work take
// there.
//
//   d = (P_W - W_0) / (P - W_0)
//
//   P    mean power within the board's own limit                [W]
//   P_W  the same where no kind of work draws more than the limit that is set
//   W_0  what the board draws at rest                           [W]
//
// The driver holds the mean of many kernels to the limit. Check:
// docs/models/gpu.md, tests/hardware/models/gpu/power_test.cc.
template <class T>
T ClockWithinSetLimit(const Device& device,
                      const model::Workload& workload,
                      const BusyShares<T>& shares) {
  model::Workload without = workload;
  without.power_limit = {};
  const auto within = PowerLevelsOf(device, workload);
  const auto levels = PowerLevelsOf(device, without);
  if (!within || !levels) return T(1.0);
  const T rest(levels->idle.base());
  const T free =
      MeanPower(*levels, shares.products, shares.others).base() - rest;
  if (!(free > T(0.0))) return T(1.0);
  const T limited =
      MeanPower(*within, shares.products, shares.others).base() - rest;
  return ClockAtPower(T(limited / free), LeastVoltage(device));
}

}  // namespace trainfare::hardware::models
