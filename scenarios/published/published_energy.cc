// Energy of runs: what rest, a FLOP and a byte cost.

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "hardware/models/gpu/power.h"
#include "model/energy.h"
#include "model/kernels.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::Seconds;

namespace {

// What the fitted costs start from, and how wide: a board's power at rest is
// read off boards (docs/models/energy.md), the energy of a FLOP on the lanes
// off those at their power limit. On tensor cores before the A100's it is some
// of that. A byte of HBM2 takes 3.9 pJ a bit (O'Connor et al. 2017), 31 pJ; as
// much again is allowed for the way through the chip.
constexpr double kRestSigma = 0.2;
constexpr double kUnknownRestShare = 1.0 / 5;  // of the limit
constexpr double kLaneSigma = 0.3;
constexpr double kWideSigma = 0.7;
constexpr double kJoulesPerByte = 62e-12;
constexpr double kUnknownLimit = 250.0;

std::vector<FreeParameter> PriorsOf(const Device& device) {
  const double limit =
      device.max_power ? ToWatts(*device.max_power) : kUnknownLimit;
  hardware::ArithmeticEnergy energy;
  energy.lanes = model::JoulesPerFlop<>(limit / device.VectorPeak().base());
  if (device.energy) energy = *device.energy;
  const double lane = energy.lanes.base();
  return {{device.idle_power ? ToWatts(*device.idle_power)
                             : limit * kUnknownRestShare,
           kRestSigma},
          {lane, kLaneSigma},
          {lane * energy.tensor_half, kWideSigma},
          {kJoulesPerByte, kWideSigma}};
}

model::WorkCosts<double> CostsOf(const std::vector<double>& values) {
  return {model::Watt(values[0]),
          model::JoulesPerFlop<>(values[1]),
          model::JoulesPerFlop<>(values[2]),
          model::JoulesPerByte<>(values[3])};
}

// Of all steps of a run, on one of its devices.
model::WorkDone WorkOf(const Described& d, double steps, Seconds<> time) {
  const Device& device = FindDevice(*d.run->device);
  const bool lanes = hardware::models::EngineOf(device, d.workload.precision) ==
                     hardware::models::GpuEngine::kLanes;
  const model::KernelList list = ExpandKernels(d.workload);
  model::WorkDone work;
  work.time = time;
  for (const model::Phase phase : {model::Phase::kForward,
                                   model::Phase::kBackward,
                                   model::Phase::kOptimizer}) {
    const model::PhaseCounts counts = list.Counts(phase);
    (lanes ? work.lanes : work.tensor_cores) +=
        model::Flop(static_cast<double>(counts.matrix_flops) * steps);
    work.traffic += model::Byte(
        static_cast<double>(counts.bytes_read + counts.bytes_written) * steps);
  }
  return work;
}

}  // namespace

PublishedPrediction RunEnergy(PublishedSteps& steps, const PublishedRow& row) {
  const PublishedRuns& runs = steps.runs();
  const PublishedRun& run = runs.RunOf(row);
  PublishedRow whole = row;
  whole.quantity = "run_time";
  whole.part.reset();
  const PublishedPrediction time = steps.RunTime(whole);
  const auto work_of = [&](const PublishedRun& of, Seconds<> took) {
    const Described d = steps.Describe(of, row.run);
    std::string how;
    const model::RunPlan plan = runs.PlanOf(d, row.run, how);
    return WorkOf(
        d, static_cast<double>(StepsPerEpoch(plan) * plan.epochs), took);
  };
  struct Seen {
    double energy;  // of one device
    model::WorkDone work;
  };
  std::vector<Seen> seen;
  for (const PublishedRow* other : runs.RowsToFit("energy", row.run)) {
    const PublishedRun& of = runs.RunOf(*other);
    seen.push_back({other->value.low / static_cast<double>(of.device_count),
                    work_of(of, Seconds<>(runs.Value(of.name + "/run_time")))});
  }
  const auto values =
      FitToPriors(PriorsOf(FindDevice(*run.device)), [&](const auto& v) {
        std::vector<double> residuals;
        for (const Seen& s : seen) {
          const double energy = ToJoules(EnergyOf(CostsOf(v), s.work));
          residuals.push_back(std::log(energy / s.energy) / kTimeSigma);
        }
        return residuals;
      });
  PublishedPrediction p;
  p.value = ToJoules(EnergyOf(CostsOf(values),
                              work_of(run, Seconds<>(*time.value)))) *
            static_cast<double>(run.device_count);
  p.how = fmt::format(
      "{:.0f} W at rest, {:.1f} pJ a FLOP on the lanes, {:.1f} on tensor "
      "cores, {:.0f} a byte from {} other runs, over the predicted time",
      values[0],
      values[1] * 1e12,
      values[2] * 1e12,
      values[3] * 1e12,
      seen.size());
  return p;
}

}  // namespace trainfare::scenarios
