#include "scenarios/job/energy.h"

#include <algorithm>
#include <cmath>

#include "calibrate/records/statistics.h"
#include "hardware/models/kind.h"
#include "hardware/models/step_time.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Seconds;
using BusyShares = hardware::BusyShares<double>;

// Of the run, with the messages of its ranks; `working`: the share of it that
// steps take.
BusyShares SharesOf(const StepEstimate& step, double working) {
  const Seconds<> total = step.total();
  const double busy = std::clamp(step.busy() / total * working, 0.0, 1.0);
  const double products =
      std::clamp(step.matrix() / total * working, 0.0, busy);
  return {products, busy - products};
}

std::optional<calibrate::PowerAnswer> PowerAt(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const BusyShares& shares) {
  const auto& fitted = predictor.fit().power;
  return calibrate::MeanPowerOf(predictor.device(),
                                workload,
                                shares.products,
                                shares.others,
                                fitted ? &*fitted : nullptr);
}

}  // namespace

std::optional<calibrate::PowerAnswer> StepPower(
    const calibrate::Predictor& predictor,
    const model::Workload& workload,
    const StepEstimate& step) {
  return PowerAt(predictor, workload, SharesOf(step, 1.0));
}

void EstimateEnergy(const calibrate::Predictor& predictor, JobEstimate& job) {
  const Device& device = predictor.device();
  if (!device.max_power) return;
  const double working =
      (job.run.training - job.run.input_wait + job.run.evaluation) /
      job.run.total();
  const auto power =
      PowerAt(predictor, job.workload, SharesOf(job.step, working));
  job.energy_is_bound = !power;
  if (power) job.power_log_sigma = power->log_sigma;
  job.energy =
      (power ? power->mean : *hardware::PowerLimitOf(device, job.workload)) *
      job.run.total() *
      (static_cast<double>(job.devices) /
       static_cast<double>(job.ranks_per_device));
  // Where a board's own power is a bound, so is that of one beside it.
  std::optional<model::Watts<>> idle = device.idle_power;
  if (!idle && !power) idle = device.max_power;
  if (idle) {
    *job.energy +=
        *idle * job.run.total() * static_cast<double>(job.idle_devices);
    job.resting_power = *idle * (static_cast<double>(job.devices) /
                                     static_cast<double>(job.ranks_per_device) +
                                 static_cast<double>(job.idle_devices));
  }
}

std::optional<EnergyRange> EnergyRangeOf(const JobEstimate& job) {
  if (!job.energy || job.energy_is_bound) return std::nullopt;
  const model::Joules<> resting = std::min(
      *job.energy, job.resting_power * (job.run.total() - job.run.stepping()));
  const model::Joules<> stepping = *job.energy - resting;
  const auto factor = [&job](double of_time) {
    return std::exp(std::hypot(
        std::log(of_time), calibrate::kNormalQuantile90 * job.power_log_sigma));
  };
  const auto both = [&job](model::Joules<> of_steps, Seconds<> open) {
    return model::Joules<>(
        std::hypot(of_steps.base(), (job.resting_power * open).base()));
  };
  const model::Joules<> below = both(
      stepping * (1.0 - 1.0 / factor(job.step.low_factor)), job.open_below);
  const model::Joules<> above =
      both(stepping * (factor(job.step.high_factor) - 1.0), job.open_above);
  // The devices rest at least, for as long as the run takes at least.
  const model::Joules<> least =
      std::min(*job.energy, job.resting_power * job.run_low);
  return EnergyRange{std::max(*job.energy - below, least), *job.energy + above};
}

}  // namespace trainfare::scenarios
